"""Names found at one size, carried to runs of the same model at other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.dims import Dim
from shapetrace.dims.expressions import ExpressionError, UnboundNameError, evaluate
from shapetrace.trace.naming import keyed

if TYPE_CHECKING:
    from shapetrace.trace.records import TensorRecord, Trace


def carried(named: Trace, other: Trace, sizes: Mapping[str, int]) -> Trace:
    """A trace with the names that the same records have in a named one, where they fit.

    Args:
        named: The run whose axes were named.
        other: A run of the same model at other sizes.
        sizes: Sizes of the inputs' named axes in the other run.

    Returns:
        The other trace; a name is given to an axis only if it comes to its size there.
    """
    known = {**_sizes(named), **sizes}
    dims = {key: record.dims for key, record in keyed(named.scopes, named.sites, named.tensors)}
    tensors = tuple(
        replace(record, dims=_fitting(dims.get(key), record, known))
        for key, record in keyed(other.scopes, other.sites, other.tensors)
    )
    return replace(other, tensors=tensors)


def _sizes(named: Trace) -> dict[str, int]:
    """Every plain name's size in the named run."""
    return {
        dim.name: size
        for record in named.tensors
        for dim, size in zip(record.dims or (), record.shape, strict=False)
        if dim.name.isidentifier()
    } | {name: size for name, size in named.config if type(size) is int}


def _fitting(
    dims: tuple[Dim, ...] | None, record: TensorRecord, sizes: Mapping[str, int]
) -> tuple[Dim, ...] | None:
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
