"""Rows in the order of the run, grouped under the calls that made them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from shapetrace.report.rows import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapetrace.trace.records import Trace


@dataclass(frozen=True, slots=True)
class Call:
    """One call with what it recorded and called, in order.

    Attributes:
        row: The call's own row.
        label: Its path as seen from its caller: ``blocks.0`` under the root.
        items: Rows and calls inside it.
        failed: Whether it ended by raising.
    """

    row: Row
    label: str
    items: tuple[Item, ...]
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A stretch of items that came several times in a row, kept once.

    Attributes:
        items: The first time.
        times: How many times it came.
    """

    items: tuple[Item, ...]
    times: int


Item: TypeAlias = "Row | Call | Repeat"


def grow(trace: Trace, calls: Sequence[Row], rows: Sequence[Row]) -> Call | None:
    """The tree of a trace.

    Args:
        trace: The run.
        calls: A row per scope, in the trace's order.
        rows: The rows to hang under them, in order.

    Returns:
        The root's call; None for a trace without scopes.
    """
    inside: list[list[Row | Call]] = [[] for _ in trace.scopes]
    for row in rows:
        inside[row.scope].append(row)
    for index in range(len(trace.scopes) - 1, -1, -1):  # callees come after their callers
        scope = trace.scopes[index]
        items = tuple(sorted(inside[index], key=_when))
        parent = None if scope.parent is None else trace.scopes[scope.parent].path
        label = trace.target if parent is None else _seen_from(parent, scope.path)
        call = Call(calls[index], label, items, scope.failed)
        if scope.parent is None:
            return call
        inside[scope.parent].append(call)
    return None


def _when(item: Row | Call) -> int:
    return item.row.at if isinstance(item, Call) else item.at


def _seen_from(parent: str, path: str) -> str:
    return path.removeprefix(f"{parent}.") if parent else path


def prune(call: Call) -> Call | None:
    """The tree without the calls in which nothing was recorded; None when that is all."""
    kept = []
    for item in call.items:
        left = prune(item) if isinstance(item, Call) else item
        if left is not None:
            kept.append(left)
    return replace(call, items=tuple(kept)) if kept or call.failed else None


def without_echoes(call: Call) -> Call:
    """The tree with each value shown once where it only changes hands.

    An argument that its caller shows under the same name goes, and so does a returned
    value that the call itself or its caller shows under a name of its own.
    """
    return _hushed(call, above=frozenset(), kept_by_caller=frozenset())


_Value = tuple[object, ...]


def _value(row: Row) -> _Value:
    return (row.storage, row.shape, row.dtype, row.dims)


def _hushed(call: Call, above: frozenset[_Value], kept_by_caller: frozenset[_Value]) -> Call:
    items: list[Row | Call | Repeat] = []
    seen: set[_Value] = set(above)
    here: set[_Value] = set()
    for place, item in enumerate(call.items):
        if isinstance(item, Call):
            items.append(_hushed(item, frozenset(seen), _kept_next(call.items[place + 1 :])))
        elif isinstance(item, Repeat) or not _is_echo(item, seen, here | kept_by_caller):
            items.append(item)
        if not isinstance(item, Call | Repeat):
            seen.add((item.name, *_value(item)))
            if item.kind != "return":
                here.add(_value(item))
    return replace(call, items=tuple(items))


def _kept_next(following: Sequence[Row | Call | Repeat]) -> frozenset[_Value]:
    """The values that the caller names right after a call."""
    kept = set()
    for item in following:
        if isinstance(item, Call | Repeat):
            break
        kept.add(_value(item))
    return frozenset(kept)


def _is_echo(row: Row, seen: set[_Value], named: set[_Value] | frozenset[_Value]) -> bool:
    if row.storage is None:
        return False
    if row.kind == "argument":
        return (row.name, *_value(row)) in seen
    return row.kind == "return" and _value(row) in named
