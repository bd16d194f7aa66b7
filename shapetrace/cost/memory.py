"""Memory by the life of storages: each block counts once, however many views it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.records.queries import peak_bytes

if TYPE_CHECKING:
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
    most = peak_bytes(trace, kinds)
    return Peak(most.nbytes, most.at, innermost_scope(trace, most.at) if most.nbytes else None)


def innermost_scope(trace: Trace, at: int) -> int | None:
    """The innermost call that was running at a clock; the last entered of them."""
    running = [i for i, scope in enumerate(trace.scopes) if scope.start <= at <= scope.end]
    return running[-1] if running else None


def distinct_parameters(trace: Trace) -> tuple[ParameterRecord, ...]:
    """Parameters without buffers, the first name of each tied one."""
    first: dict[int, ParameterRecord] = {}
    for record in trace.parameters:
        if not record.buffer:
            first.setdefault(record.storage, record)
    return tuple(first.values())
