"""Whether a trace's records refer to records that are there.

Everything that reads a trace follows its indexes without a look; one that was loaded from a
file is looked through once, so that a wrong index is an error there and not a crash later.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from shapetrace.records.coders import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shapetrace.records.trace import Fold, Scope, Trace

_REFERENCES = (
    ("tensors", "site", "sites"),
    ("tensors", "scope", "scopes"),
    ("tensors", "storage", "storages"),
    ("ops", "scope", "scopes"),
    ("parameters", "storage", "storages"),
    ("parameters", "gradient", "storages"),
)
"""Table, field, and the table that the field points into."""

_MOST_TIMES = 1_000_000
"""A stretch left out more often than any run repeats would fill the memory when put back."""


def check_references(trace: Trace) -> None:
    """Refuse a trace in which a record points at nothing.

    Raises:
        DecodeError: For an index outside its table, a call inside itself or a later one, axes
            whose names are too few or too many, or a stretch that nothing can repeat.
    """
    for table, field, target in _REFERENCES:
        found = map(attrgetter(field), getattr(trace, table))
        _inside(f"{table}.{field}", found, len(getattr(trace, target)), target)
    _check_nesting(trace.scopes)
    _check_failure(trace)
    _check_dims(trace.tensors)
    _check_dims(trace.parameters)
    _check_folds(trace.folds)


def _inside(what: str, indexes: Iterable[int | None], size: int, target: str) -> None:
    distinct = set(indexes) - {None}
    wrong = [index for index in distinct if index is not None and not 0 <= index < size]
    if wrong:
        raise DecodeError(f"{what} points at {wrong[0]}, and it has {size} {target}")


def _check_nesting(scopes: Sequence[Scope]) -> None:
    """A call stands after the one that made it; a circle would never end."""
    for index, scope in enumerate(scopes):
        if scope.parent is not None and not 0 <= scope.parent < index:
            raise DecodeError(
                f"call {index} is made by call {scope.parent}, which is not before it"
            )


def _check_failure(trace: Trace) -> None:
    if trace.failure is None:
        return
    _inside("failure.scope", [trace.failure.scope], len(trace.scopes), "scopes")
    storages = [operand.storage for operand in trace.failure.operands]
    _inside("failure.operands.storage", storages, len(trace.storages), "storages")


def _check_dims(records: Iterable[Any]) -> None:
    """As many names as axes; equal pairs are looked at once."""
    pairs = {(len(record.shape), record.dims and len(record.dims)) for record in records}
    wrong = [(axes, names) for axes, names in pairs if names and axes != names]
    if wrong:
        raise DecodeError("{} axes have {} names".format(*wrong[0]))


def _check_folds(folds: Iterable[Fold]) -> None:
    for fold in folds:
        if fold.start < 0 or fold.stride < 1 or not 0 <= fold.times <= _MOST_TIMES:
            raise DecodeError(f"{fold} cannot be put back")
