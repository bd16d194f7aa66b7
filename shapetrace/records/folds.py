"""Stretches of a trace that are left out of its tables, and how to have them back.

A generation takes a thousand steps that differ in nothing but the number of tokens so far.
Where every number of a step lies on the line between those of an earlier and a later one,
the two are kept and the steps between are left out: nothing is lost, since two points give
the line. A folded trace is a valid trace by itself, in which the kept steps follow each
other directly; `expand` puts the others back, to the last clock and storage.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from shapetrace.records.trace import Fold, OpRecord, Scope, StorageRecord, TensorRecord, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shapetrace.records.trace import Shape

Value: TypeAlias = "int | float | bool | str | Shape"
_R = TypeVar("_R", TensorRecord, OpRecord)


def expand(trace: Trace) -> Trace:
    """The trace with all that was left out, as if it had never been folded."""
    if not trace.folds:
        return trace
    for fold in sorted(trace.folds, key=lambda fold: -fold.start):
        trace = _Expansion(trace, fold).expanded()
    return replace(trace, folds=())


@dataclass(frozen=True, slots=True)
class Steps:
    """The kept stretches of a folded trace that stand for a run of equal ones.

    Attributes:
        fold: The fold.
        first: The first stretch's operators, by index into `Trace.ops`.
        last: The last one's.
    """

    fold: Fold
    first: range
    last: range

    def ops(self, trace: Trace, number: int) -> list[OpRecord]:
        """The operators of one of the stretches, 0 being the first, `times` + 1 the last."""
        parts = self.fold.times + 1
        pairs = zip(trace.ops[_slice(self.first)], trace.ops[_slice(self.last)], strict=True)
        return [_sized_op(a, c, number, parts) for a, c in pairs]


def steps_of(trace: Trace, fold: Fold) -> Steps:
    """The two kept stretches of a fold."""
    clocks = [op.at for op in trace.ops]
    middle = fold.start + fold.stride
    first = _between(clocks, fold.start, middle)
    return Steps(fold, first, _between(clocks, middle, middle + fold.stride))


class _Expansion:
    """One fold's stretches put back; names as in `Fold`."""

    def __init__(self, trace: Trace, fold: Fold) -> None:
        self.trace = trace
        self.times, self.stride = fold.times, fold.stride
        self.start, self.middle = fold.start, fold.start + fold.stride
        self.end = self.middle + fold.stride
        starts = [scope.start for scope in trace.scopes]
        self.first_scopes = _between(starts[1:], self.start, self.middle, 1)
        born = [storage.born for storage in trace.storages]
        fresh = [i for i, at in enumerate(born) if self.start <= at < self.middle]
        self.first_storages = range(fresh[0], fresh[-1] + 1) if fresh else range(0)

    def expanded(self) -> Trace:
        trace = self.trace
        return replace(
            trace,
            scopes=self._scopes(),
            tensors=self._records(trace.tensors, _sized_tensor),
            ops=self._records(trace.ops, _sized_op),
            storages=self._storages(),
            failure=trace.failure
            and replace(
                trace.failure,
                scope=self._later_scope(trace.failure.scope),
                at=self._later(trace.failure.at),
            ),
            folds=tuple(
                replace(other, start=self._later(other.start))
                for other in trace.folds
                if other.start != self.start
            ),
        )

    # A number of the last kept stretch, moved to stretch `k`: `times` + 1 is its own place.

    def _clock(self, at: int, k: int) -> int:
        return at + (k - 1) * self.stride if at >= self.start else at

    def _scope(self, index: int, k: int) -> int:
        first = self.first_scopes
        return index + (k - 1) * len(first) if first and index >= first.start else index

    def _storage(self, index: int | None, k: int) -> int | None:
        first = self.first_storages
        return (
            index + (k - 1) * len(first)
            if index is not None and first and index >= first.start
            else index
        )

    # A number of what comes after the last kept stretch.

    def _later(self, at: int) -> int:
        return at + self.times * self.stride if at >= self.middle else at

    def _later_scope(self, index: int) -> int:
        first = self.first_scopes
        return index + self.times * len(first) if first and index >= first.stop else index

    def _later_storage(self, index: int | None) -> int | None:
        first = self.first_storages
        moved = index is not None and bool(first) and index >= first.stop
        return index + self.times * len(first) if moved and index is not None else index

    def _records(
        self, table: Sequence[_R], sized: Callable[[_R, _R, int, int], _R]
    ) -> tuple[_R, ...]:
        clocks = [record.at for record in table]
        first = _between(clocks, self.start, self.middle)
        last = _between(clocks, self.middle, self.end)
        pairs = list(zip(table[_slice(first)], table[_slice(last)], strict=True))
        rows = list(table[: first.stop])
        for k in range(1, self.times + 2):
            rows += [self._moved(sized(a, c, k, self.times + 1), k) for a, c in pairs]
        rows += [self._moved_after(record) for record in table[last.stop :]]
        return tuple(rows)

    def _moved(self, record: _R, k: int) -> _R:
        if isinstance(record, OpRecord):
            return replace(record, scope=self._scope(record.scope, k), at=self._clock(record.at, k))
        return replace(
            record,
            scope=self._scope(record.scope, k),
            since=self._clock(record.since, k),
            at=self._clock(record.at, k),
            storage=self._storage(record.storage, k),
        )

    def _moved_after(self, record: _R) -> _R:
        if isinstance(record, OpRecord):
            return replace(record, scope=self._later_scope(record.scope), at=self._later(record.at))
        return replace(
            record,
            scope=self._later_scope(record.scope),
            since=self._later(record.since),
            at=self._later(record.at),
            storage=self._later_storage(record.storage),
        )

    def _scopes(self) -> tuple[Scope, ...]:
        scopes, first = self.trace.scopes, self.first_scopes
        last = range(first.stop, first.stop + len(first))
        kept = [
            replace(scope, end=self._later(scope.end)) if scope.end >= self.middle else scope
            for scope in scopes[: first.stop]
        ]
        between = [
            replace(
                scope,
                parent=None if scope.parent is None else self._scope(scope.parent, k),
                start=self._clock(scope.start, k),
                end=self._clock(scope.end, k),
            )
            for k in range(1, self.times + 2)
            for scope in scopes[_slice(last)]
        ]
        after = [
            replace(
                scope,
                parent=None if scope.parent is None else self._later_scope(scope.parent),
                start=self._later(scope.start),
                end=self._later(scope.end),
            )
            for scope in scopes[last.stop :]
        ]
        return (*kept, *between, *after)

    def _storages(self) -> tuple[StorageRecord, ...]:
        storages, first = self.trace.storages, self.first_storages
        last = range(first.stop, first.stop + len(first))
        before = [
            storage if storage.died is None else replace(storage, died=self._later(storage.died))
            for storage in storages[: first.start]
        ]
        pairs = list(zip(storages[_slice(first)], storages[_slice(last)], strict=True))
        between = [
            replace(
                c,
                nbytes=_line(a.nbytes, c.nbytes, k, self.times + 1),
                born=self._clock(c.born, k),
                died=None if a.died is None else a.died + k * self.stride,
            )
            for k in range(1, self.times + 1)
            for a, c in pairs
        ]
        after = [
            replace(
                storage,
                born=self._later(storage.born),
                died=None if storage.died is None else self._later(storage.died),
            )
            for storage in storages[first.stop :]
        ]
        return (*before, *storages[_slice(first)], *between, *after)


def _sized_tensor(a: TensorRecord, c: TensorRecord, k: int, parts: int) -> TensorRecord:
    return replace(
        c, shape=_shape(a.shape, c.shape, k, parts), nbytes=_line(a.nbytes, c.nbytes, k, parts)
    )


def _sized_op(a: OpRecord, c: OpRecord, k: int, parts: int) -> OpRecord:
    return replace(
        c,
        inputs=tuple(
            None if old is None or new is None else _shape(old, new, k, parts)
            for old, new in zip(a.inputs, c.inputs, strict=True)
        ),
        outputs=tuple(
            _shape(old, new, k, parts) for old, new in zip(a.outputs, c.outputs, strict=True)
        ),
        attributes=tuple(
            (name, _value(old, new, k, parts))
            for (name, old), (_, new) in zip(a.attributes, c.attributes, strict=True)
        ),
        nbytes=_line(a.nbytes, c.nbytes, k, parts),
    )


def _value(old: Value, new: Value, k: int, parts: int) -> Value:
    if isinstance(old, tuple) and isinstance(new, tuple):
        return _shape(old, new, k, parts)
    if type(old) is int and type(new) is int:
        return _line(old, new, k, parts)
    return new


def _shape(old: Shape, new: Shape, k: int, parts: int) -> Shape:
    if old == new:
        return new
    return tuple(_line(a, c, k, parts) for a, c in zip(old, new, strict=True))


def _line(a: int, c: int, k: int, parts: int) -> int:
    """The number at `k` of `parts` equal parts of the way from `a` to `c`."""
    return a + k * (c - a) // parts


def _between(clocks: Sequence[int], start: int, end: int, offset: int = 0) -> range:
    """The places of a table whose clocks lie in a stretch; clocks rise along the table."""
    return range(bisect_left(clocks, start) + offset, bisect_left(clocks, end) + offset)


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)
