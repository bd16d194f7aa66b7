"""Names found at one size, carried to runs of the same model at other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from shapetrace.dims import Dim
from shapetrace.dims.expressions import ExpressionError, UnboundNameError, evaluate
from shapetrace.naming.name_trace import Key, keyed

if TYPE_CHECKING:
    from shapetrace.records.trace import TensorRecord, Trace

Dims: TypeAlias = tuple[Dim, ...]


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
    always = _always(dims)
    tensors = tuple(
        replace(record, dims=_fitting(dims.get(key, always.get(key[:-1])), record, known))
        for key, record in keyed(other.scopes, other.sites, other.tensors)
    )
    return replace(other, tensors=tensors)


def _always(dims: Mapping[Key, Dims | None]) -> dict[tuple[object, ...], Dims]:
    """By place in the source, whichever time: the names that its axes had every time."""
    found: dict[tuple[object, ...], list[Dims]] = {}
    for key, one in dims.items():
        if one is not None:
            found.setdefault(key[:-1], []).append(one)
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
