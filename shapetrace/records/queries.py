"""Questions about a trace, answered in one pass and then by look-up."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from shapetrace.records.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from shapetrace.records.trace import OpRecord, StorageKind, TensorRecord


@dataclass(frozen=True, eq=False)
class TraceIndex:
    """A trace with the look-ups that reports, checks and costs share.

    Each index is built once, on first use, in one pass over its table. Scopes, tensors and
    operators are named by their place in the trace's tables.

    Attributes:
        trace: The trace.
    """

    trace: Trace

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each scope, the scopes that it called, in order of entry."""
        scopes = self.trace.scopes
        return _group((scope.parent for scope in scopes), len(scopes))

    @cached_property
    def tensors_in(self) -> tuple[tuple[int, ...], ...]:
        """For each scope, the tensors recorded in that call itself, in order."""
        return _group((tensor.scope for tensor in self.trace.tensors), len(self.trace.scopes))

    @cached_property
    def ops_in(self) -> tuple[tuple[int, ...], ...]:
        """For each scope, the operators that it ran itself, not through a call, in order."""
        return _group((op.scope for op in self.trace.ops), len(self.trace.scopes))

    @cached_property
    def subtree_ends(self) -> tuple[int, ...]:
        """For each scope, the index after its last descendant.

        Scopes stand in order of entry, and calls nest, so a scope's descendants directly
        follow it.
        """
        ends = list(range(1, len(self.trace.scopes) + 1))
        for index in range(len(ends) - 1, -1, -1):
            parent = self.trace.scopes[index].parent
            if parent is not None:
                ends[parent] = max(ends[parent], ends[index])
        return tuple(ends)

    @cached_property
    def module_paths(self) -> tuple[str, ...]:
        """For each scope, the path of the module whose code it is: a function's is its caller's."""
        paths: list[str] = []
        for scope in self.trace.scopes:
            inherited = paths[scope.parent] if scope.parent is not None else ""
            paths.append(scope.path if scope.kind == "module" else inherited)
        return tuple(paths)

    def subtree(self, scope: int) -> range:
        """A scope and all that it called, directly or not."""
        return range(scope, self.subtree_ends[scope])

    def ancestors(self, scope: int) -> Iterator[int]:
        """The callers of a scope, innermost first."""
        parent = self.trace.scopes[scope].parent
        while parent is not None:
            yield parent
            parent = self.trace.scopes[parent].parent

    def exclusive_ops(self, scope: int) -> tuple[OpRecord, ...]:
        """The operators that a scope ran itself."""
        return tuple(self.trace.ops[index] for index in self.ops_in[scope])

    def inclusive_ops(self, scope: int) -> tuple[OpRecord, ...]:
        """The operators that a scope and all that it called ran, in order.

        By scope and not by clock: an operator of the backward pass belongs to the scope
        that ran it forward, which has ended by then.
        """
        indices = sorted(index for inner in self.subtree(scope) for index in self.ops_in[inner])
        return tuple(self.trace.ops[index] for index in indices)

    def statement_ops(self, tensor: TensorRecord) -> tuple[OpRecord, ...]:
        """The operators that ran for the statement that made a tensor, calls inside included."""
        first = bisect_right(self._op_clock, tensor.since)
        return self.trace.ops[first : bisect_right(self._op_clock, tensor.at)]

    @cached_property
    def _op_clock(self) -> tuple[int, ...]:
        return tuple(op.at for op in self.trace.ops)


@dataclass(frozen=True, slots=True)
class LivePoint:
    """How much memory was live from one moment on.

    Attributes:
        at: Clock.
        nbytes: Bytes live after all that happened at that clock.
    """

    at: int
    nbytes: int


def module_path(trace: Trace, scope: int) -> str:
    """The path of the module whose code a scope is: a function's is its caller's."""
    record = trace.scopes[scope]
    while record.kind != "module" and record.parent is not None:
        record = trace.scopes[record.parent]
    return record.path if record.kind == "module" else ""


def live_bytes(trace: Trace, kinds: Collection[StorageKind]) -> tuple[LivePoint, ...]:
    """Bytes live over time, by storage: a storage with many views counts once.

    A storage lives from its birth up to, not including, the clock of its death.

    Args:
        trace: The trace.
        kinds: The storages to count, by what they hold.

    Returns:
        A point for each clock at which the total may have changed, in order.
    """
    changes: dict[int, int] = {}
    for storage in trace.storages:
        if storage.kind in kinds:
            changes[storage.born] = changes.get(storage.born, 0) + storage.nbytes
            if storage.died is not None:
                changes[storage.died] = changes.get(storage.died, 0) - storage.nbytes
    clocks = sorted(changes)
    totals = accumulate(changes[at] for at in clocks)
    return tuple(LivePoint(at, total) for at, total in zip(clocks, totals, strict=True))


def peak_bytes(trace: Trace, kinds: Collection[StorageKind]) -> LivePoint:
    """The most bytes that were live at once, and the first clock at which they were.

    Args:
        trace: The trace.
        kinds: The storages to count, by what they hold.

    Returns:
        The peak; zero bytes at clock 0 where no such storage lived.
    """
    return max(live_bytes(trace, kinds), key=lambda point: point.nbytes, default=LivePoint(0, 0))


def live_storages(trace: Trace, at: int, kinds: Collection[StorageKind]) -> tuple[int, ...]:
    """The storages alive at a clock, largest first: what a peak is made of."""
    alive = (
        index
        for index, storage in enumerate(trace.storages)
        if storage.kind in kinds
        and storage.born <= at
        and (storage.died is None or at < storage.died)
    )
    return tuple(sorted(alive, key=lambda index: -trace.storages[index].nbytes))


def _group(owners: Iterator[int | None], count: int) -> tuple[tuple[int, ...], ...]:
    """For each owner, the places in the table that name it."""
    groups: list[list[int]] = [[] for _ in range(count)]
    for index, owner in enumerate(owners):
        if owner is not None:
            groups[owner].append(index)
    return tuple(map(tuple, groups))
