"""Memory by the life of storages: each block counts once, however many views it has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from shapetrace.records.trace import ParameterRecord, StorageKind, Trace


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory that was live at once.

    Attributes:
        nbytes: Bytes.
        at: Clock when it was first reached; 0 when there was nothing.
        scope: Index of the innermost call that was running then; None without one.
    """

    nbytes: int
    at: int
    scope: int | None


def peak(trace: Trace, kinds: tuple[StorageKind, ...] = ("activation",)) -> Peak:
    """The most bytes of storages of some kinds that were live at once."""
    nbytes, at = max(live_bytes(trace, kinds), key=lambda point: point[0], default=(0, 0))
    return Peak(nbytes, at, innermost_scope(trace, at) if nbytes else None)


def live_bytes(trace: Trace, kinds: Collection[StorageKind]) -> list[tuple[int, int]]:
    """Bytes live over time, by storage: a storage with many views counts once.

    A storage lives from its birth up to, not including, the clock of its death.

    Args:
        trace: The trace.
        kinds: The storages to count, by what they hold.

    Returns:
        The bytes and the clock from which on they are live, for each clock at which the total
        may have changed, in order.
    """
    changes: dict[int, int] = {}
    for storage in trace.storages:
        if storage.kind in kinds:
            changes[storage.born] = changes.get(storage.born, 0) + storage.nbytes
            if storage.died is not None:
                changes[storage.died] = changes.get(storage.died, 0) - storage.nbytes
    clocks = sorted(changes)
    totals = accumulate(changes[at] for at in clocks)
    return list(zip(totals, clocks, strict=True))


def innermost_scope(trace: Trace, at: int) -> int | None:
    """The innermost call that was running at a clock; the last entered of them."""
    running = [i for i, scope in enumerate(trace.scopes) if scope.start <= at <= scope.end]
    return running[-1] if running else None


def distinct_parameters(trace: Trace) -> tuple[ParameterRecord, ...]:
    """Parameters without buffers, the first name of each tied one."""
    first = _first_names(trace)
    return tuple(r for r in trace.parameters if not r.buffer and first[_place(r)] == r.path)


def tied_to(trace: Trace) -> dict[str, str]:
    """By each later name of a tied parameter or buffer, its first name."""
    first = _first_names(trace)
    return {r.path: first[_place(r)] for r in trace.parameters if first[_place(r)] != r.path}


def _first_names(trace: Trace) -> dict[tuple[int, int] | str, str]:
    """The first name of what lies at each place."""
    first: dict[tuple[int, int] | str, str] = {}
    for record in trace.parameters:
        first.setdefault(_place(record), record.path)
    return first


def _place(record: ParameterRecord) -> tuple[int, int] | str:
    """Where a parameter lies; what is packed or sparse has no storage to tell it by."""
    return (record.storage, record.offset) if record.storage >= 0 else record.path
