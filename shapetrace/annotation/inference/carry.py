"""Names found at one size, carried to runs of the same model at other sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from shapetrace.dims import Dim
from shapetrace.dims.expressions import ExpressionError, UnboundNameError, evaluate
from shapetrace.naming.name_trace import TensorKey, keyed

if TYPE_CHECKING:
    from shapetrace.records.trace import TensorRecord, Trace

Dims: TypeAlias = tuple[Dim, ...]
_NUMBER = re.compile(r"\[\d+\]")


def carried(named: Trace, other: Trace, sizes: Mapping[str, int]) -> Trace:
    """A trace with the names that the same records have in a named one, where they fit.

    Args:
        named: The run whose axes were named.
        other: A run of the same model at other sizes.
        sizes: Sizes of the inputs' named axes in the other run.

    Returns:
        The other trace; a name is given to an axis only if it comes to its size there. What
        a loop met more often there has the names that it had each time in the named run.
    """
    known = {**_sizes(named), **sizes}
    dims = {key: record.dims for key, record in keyed(named.scopes, named.sites, named.tensors)}
    always, anywhere = _always(dims, _place), _always(dims, _container)
    tensors = tuple(
        replace(
            record,
            dims=_fitting(
                dims.get(key, always.get(_place(key), anywhere.get(_container(key)))), record, known
            ),
        )
        for key, record in keyed(other.scopes, other.sites, other.tensors)
    )
    return replace(other, tensors=tensors)


def completed(first: Trace, second: Trace) -> Trace:
    """A run with the names of one naming, and of another where that one knows but a number.

    Args:
        first: The run under names that go before.
        second: The same run under others.
    """
    tensors = tuple(
        replace(one, dims=_complete(one.dims, other.dims))
        for one, other in zip(first.tensors, second.tensors, strict=True)
    )
    return replace(first, tensors=tensors)


def _complete(first: Dims | None, second: Dims | None) -> Dims | None:
    if first is None or second is None or len(first) != len(second):
        return second if first is None else first
    return tuple(
        other if one.evidence == "literal" else one
        for one, other in zip(first, second, strict=True)
    )


def _place(key: TensorKey) -> tuple[object, ...]:
    """A place in the source, whichever time."""
    return key[:-1]


def _container(key: TensorKey) -> tuple[object, ...]:
    """A place in the source, whichever time and whichever item of a list."""
    *place, element, _ = key
    return (*place, _NUMBER.sub("[*]", element))


def _always(
    dims: Mapping[TensorKey, Dims | None], place_of: Callable[[TensorKey], tuple[object, ...]]
) -> dict[tuple[object, ...], Dims]:
    """By place: the names that its axes had every time."""
    found: dict[tuple[object, ...], list[Dims]] = {}
    for key, one in dims.items():
        if one is not None:
            found.setdefault(place_of(key), []).append(one)
    return {
        place: tuple(map(_same, zip(*seen, strict=True)))
        for place, seen in found.items()
        if len({len(one) for one in seen}) == 1
    }


def _same(axis: tuple[Dim, ...]) -> Dim:
    """What an axis is each time; a name that no size fits where it is not always the same."""
    return axis[0] if len({dim.name for dim in axis}) == 1 else Dim("", "literal", "differs")


def _sizes(named: Trace) -> dict[str, int]:
    """Every plain name's size in the named run."""
    return {
        dim.name: size
        for record in named.tensors
        for dim, size in zip(record.dims or (), record.shape, strict=False)
        if dim.name.isidentifier()
    } | {name: size for name, size in named.config if type(size) is int}


def _fitting(dims: Dims | None, record: TensorRecord, sizes: Mapping[str, int]) -> Dims | None:
    if dims is None or len(dims) != len(record.shape):
        return None
    return tuple(
        dim if _comes_to(dim.name, sizes) == size else Dim(str(size), "literal", "does not fit")
        for dim, size in zip(dims, record.shape, strict=True)
    )


def _comes_to(name: str, sizes: Mapping[str, int]) -> int | None:
    try:
        value = evaluate(name, sizes)
    except (ExpressionError, UnboundNameError):
        return None
    return value if isinstance(value, int) else None
