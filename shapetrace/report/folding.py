"""Equal parts of a tree once: layers in a row, and calls that lie in calls like themselves."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.report.tree import Call, Item, Repeat

if TYPE_CHECKING:
    from shapetrace.report.rows import Row

_LONGEST = 24
"""Longest stretch of items that is looked for; a layer's call and its caller's locals."""


class Folder:
    """Folds a tree; equal subtrees are found by number, so each is compared once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}

    def fold(self, call: Call) -> Call:
        """The tree with every repeated stretch of calls kept once."""
        return self._folded(call)[0]

    def _folded(self, call: Call) -> tuple[Call, int]:
        items: list[Item] = []
        marks: list[int] = []
        for item in call.items:
            if isinstance(item, Call):
                inner, mark = self._folded(item)
                items.append(inner)
                marks.append(mark)
            else:
                items.append(item)
                marks.append(self._number(_look(item)))
        row = call.row
        look = (re.sub(r"\d+", "#", call.label), row.name, row.flops, call.failed, *marks)
        return replace(call, items=_runs(items, marks)), self._number(look)

    def _number(self, look: tuple[object, ...]) -> int:
        return self._numbers.setdefault(look, len(self._numbers))


def _look(item: Row | Repeat) -> tuple[object, ...]:
    """What must be equal for two rows to be folded into one."""
    if isinstance(item, Repeat):
        return (item,)
    return (item.name, item.kind, item.dims, item.shape, item.dtype, item.flops, item.complete)


def _runs(items: list[Item], marks: list[int]) -> tuple[Item, ...]:
    folded: list[Item] = []
    start = 0
    while start < len(items):
        length, times = _longest_run(items, marks, start)
        stretch = items[start : start + length]
        folded += [Repeat(tuple(stretch), times)] if times > 1 else stretch
        start += length * times
    return tuple(folded)


def _longest_run(items: list[Item], marks: list[int], start: int) -> tuple[int, int]:
    """Length of the repeated stretch at `start` that covers most, and how often it comes."""
    best = (1, 1)
    for length in range(1, min(_LONGEST, (len(items) - start) // 2) + 1):
        if not any(isinstance(item, Call) for item in items[start : start + length]):
            continue
        times = _repeats(marks, start, length)
        if times > 1 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def _repeats(marks: list[int], start: int, length: int) -> int:
    first = marks[start : start + length]
    times = 1
    while marks[start + times * length : start + (times + 1) * length] == first:
        times += 1
    return times


def nested_once(call: Call) -> Call:
    """The tree with calls that equal what they call kept once: a recursion is one line."""
    items: list[Item] = []
    for item in call.items:
        items.append(nested_once(item) if isinstance(item, Call) else item)  # noqa: PERF401 - deep
    inner = [item for item in items if isinstance(item, Call)]
    if len(inner) == 1 and _own_look(call) == _own_look(inner[0]):
        return replace(inner[0], row=call.row, deep=inner[0].deep + 1)
    return replace(call, items=tuple(items))


def _own_look(call: Call) -> tuple[object, ...]:
    """What a call shows but for what it calls."""
    own = [_look(item) for item in call.items if not isinstance(item, Call)]
    return (call.label, call.row.name, call.row.file, call.row.line, call.failed, *own)
