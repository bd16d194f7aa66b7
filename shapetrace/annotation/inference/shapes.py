"""One place's tensors, from all calls, as one annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shapetrace.annotation.inference.calls import ObservedTensor
from shapetrace.annotation.inference.dtypes import dtype_class
from shapetrace.annotation.plan.annotation import ANY_SHAPE, Annotation, Array, union

if TYPE_CHECKING:
    from shapetrace.annotation.inference.axes import AxisNames, AxisOccurrences

_MOST_RANKS = 3
Tensors = Mapping[int, Sequence[ObservedTensor]]
"""By number of the call: the tensors that stood in one place."""


def annotation_of(
    tensors: Tensors, names: AxisNames, hint: str, *, firm: bool, exact: bool = False
) -> Annotation:
    """The least general annotation that holds for all of some tensors.

    Where one call has several ranks in one place (the values of a dict), each rank gets an
    alternative: no run of axes could stand for both.

    Args:
        tensors: What stood there.
        names: The function's axis names so far.
        hint: The place in a word, for axes that nothing names: ``x``.
        firm: Whether every call of the function has a tensor there.
        exact: Whether one dtype alone is written exactly.
    """
    mixed = [{len(one.shape) for one in seen} for seen in tensors.values()]
    ranks = sorted(set().union(*mixed))
    if all(len(ranks) == 1 for ranks in mixed) or not 1 < len(ranks) <= _MOST_RANKS:
        return _array(tensors, names, hint, firm=firm, exact=exact)
    by_rank = [_of_rank(tensors, rank) for rank in ranks]
    return union([_array(one, names, hint, firm=False, exact=exact) for one in by_rank])


def _of_rank(tensors: Tensors, rank: int) -> Tensors:
    found = {
        call: [one for one in seen if len(one.shape) == rank] for call, seen in tensors.items()
    }
    return {call: seen for call, seen in found.items() if seen}


def _array(tensors: Tensors, names: AxisNames, hint: str, *, firm: bool, exact: bool) -> Array:
    seen = [one for in_call in tensors.values() for one in in_call]
    dtype = dtype_class([one.dtype for one in seen], exact=exact)
    if not all(one.sized for one in seen):
        return Array(dtype, ANY_SHAPE)
    ranks = {len(one.shape) for one in seen}
    if len(ranks) == 1:
        return Array(dtype, _axes(tensors, names, hint, range(ranks.pop()), firm=firm))
    return Array(dtype, _mixed(tensors, seen, names, hint, firm=firm))


def _axes(
    tensors: Tensors, names: AxisNames, hint: str, axes: Sequence[int], *, firm: bool
) -> tuple[str, ...]:
    return tuple(
        names.name(_column(tensors, axis), f"{hint}_{place}", firm=firm)
        for place, axis in enumerate(axes)
    )


def _column(tensors: Tensors, axis: int) -> AxisOccurrences:
    return {
        call: [(one.names[axis], one.shape[axis]) for one in seen] for call, seen in tensors.items()
    }


def _mixed(
    tensors: Tensors, seen: Sequence[ObservedTensor], names: AxisNames, hint: str, *, firm: bool
) -> tuple[str, ...]:
    """Tensors of several ranks: what they share at one end, and a run of axes for the rest."""
    fewest = min(len(one.shape) for one in seen)
    last = _shared(seen, fewest, from_end=True)
    first = 0 if last else _shared(seen, fewest, from_end=False)
    if not last and not first and fewest:
        last = 1  # nothing is the same; the last axis is still there in all
    # jaxtyping checks the axes around a run before the run itself
    head = _axes(tensors, names, hint, range(first), firm=firm)
    tail = _axes(tensors, names, hint, range(-last, 0), firm=firm)
    runs = {
        call: [one.shape[first : len(one.shape) - last] for one in in_call]
        for call, in_call in tensors.items()
    }
    base = "rest" if first else "batch" if last else "shape"
    return (*head, names.variadic(runs, base), *tail)


def _shared(seen: Sequence[ObservedTensor], fewest: int, *, from_end: bool) -> int:
    """How many axes at one end have the same name, or the same bare number, in all tensors."""
    count = 0
    while count < fewest:
        axis = -count - 1 if from_end else count
        if len({one.names[axis] or one.shape[axis] for one in seen}) > 1:
            break
        count += 1
    return count
