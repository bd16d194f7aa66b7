"""Rows in the order of the run, grouped under the calls that made them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from shapetrace.report.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Call:
    """One call with what it recorded and called, in order.

    Attributes:
        row: The call's own row.
        label: Its path as seen from its caller: ``blocks.0`` under the root.
        items: Rows and calls inside it.
        failed: Whether it ended by raising.
        deep: How many equal calls lie in each other, of which this is the outermost.
    """

    row: Row
    label: str
    items: tuple[Item, ...]
    failed: bool = False
    deep: int = 1


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
    """A path without the part that it shares with the module that called."""
    module = parent
    while module.endswith("()"):
        module = module.rpartition(".")[0]
    for prefix in (parent, module):
        if prefix and path.startswith(f"{prefix}."):
            return path.removeprefix(f"{prefix}.")
    return path


@contextmanager
def walkable(trace: Trace) -> Iterator[None]:
    """Let the walks below go as deep as the calls of a trace: a model may have gone as deep."""
    depths: list[int] = []
    for scope in trace.scopes:  # callees come after their callers
        depths.append(0 if scope.parent is None else depths[scope.parent] + 1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + max(depths, default=0))  # a level of each walk is one frame
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def hoisted(call: Call) -> Call:
    """The tree without a root that only calls the traced model; its label stays."""
    inner = call.items[0] if len(call.items) == 1 else None
    if isinstance(inner, Call) and not inner.label:
        return replace(inner, label=call.label)
    return call


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

    What goes: an argument that its caller shows under the same name; a returned value that
    the call itself or its caller shows under a name of its own; and what the caller names
    as the call inside it did.
    """
    return _Listener().hushed(call, frozenset(), frozenset())


_Value: TypeAlias = tuple[object, ...]


def _value(row: Row) -> _Value:
    return (row.storage, row.shape, row.dtype)


class _Listener:
    """Walks a tree and leaves out the echoes.

    Attributes:
        last: The named values of the call that ended last, until another row is met.
    """

    def __init__(self) -> None:
        self.last: frozenset[_Value] = frozenset()

    def hushed(self, call: Call, above: frozenset[_Value], next_: frozenset[_Value]) -> Call:
        """A call without echoes.

        Args:
            call: The call.
            above: Names and values that its callers have shown.
            next_: Values that its caller names right after it.
        """
        items: list[Row | Call | Repeat] = []
        seen, here = set(above), set[_Value]()
        named: set[_Value] = set()
        self.last = frozenset()
        for place, item in enumerate(call.items):
            if isinstance(item, Call):
                items.append(self.hushed(item, frozenset(seen), _kept_next(call.items, place + 1)))
                continue
            if isinstance(item, Repeat):
                items.append(item)
                continue
            name = (item.name, *_value(item))
            if not _is_echo(item, seen, here, next_) and not self._is_heard(item, name):
                items.append(item)
            seen.add(name)
            if item.kind != "return":
                here.add(_value(item))
                named.add(name)
        self.last |= named  # what the call inside named last may be handed on unchanged
        return replace(call, items=tuple(items))

    def _is_heard(self, row: Row, name: _Value) -> bool:
        return row.storage is not None and row.kind == "local" and name in self.last


def _kept_next(items: Sequence[Row | Call | Repeat], start: int) -> frozenset[_Value]:
    """The values that the caller names right after a call."""
    kept = set()
    for item in items[start:]:
        if isinstance(item, Call | Repeat):
            break
        kept.add(_value(item))
    return frozenset(kept)


def _is_echo(row: Row, seen: set[_Value], here: set[_Value], next_: frozenset[_Value]) -> bool:
    if row.storage is None:
        return False
    if row.kind == "argument":
        return (row.name, *_value(row)) in seen
    return row.kind == "return" and (_value(row) in here or _value(row) in next_)
