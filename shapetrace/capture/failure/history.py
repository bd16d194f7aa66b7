"""What the variables of a stopped function were bound to, and at which lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

import torch

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.events import Event
from shapetrace.capture.source.registry import REGISTRY
from shapetrace.records.trace import Shape


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable, an argument or an attribute, bound to one tensor.

    Attributes:
        name: As written: ``x``, ``self.cache``.
        line: Line of the statement.
        is_argument: Whether the function was called with it.
        shape: The tensor's sizes.
        dtype: Its dtype.
    """

    name: str
    line: int
    is_argument: bool
    shape: Shape
    dtype: torch.dtype


def history(events: Sequence[Event], code: CodeType) -> list[Bound]:
    """What the innermost open call of a function bound, in order; empty if it is not known."""
    end = len(events)
    while end and events[end - 1][0] in (kinds.EXIT, kinds.FREE):
        end -= 1
    start = _entered(events[:end], code)
    if start is None:
        return []
    function = events[start][1]
    return list(_bound(events[start + 1 : end], function))


def _entered(events: Sequence[Event], code: CodeType) -> int | None:
    """Where the innermost open call of a function begins."""
    closed = 0
    for number in range(len(events) - 1, -1, -1):
        kind = events[number][0]
        if kind == kinds.EXIT:
            closed += 1
        elif kind == kinds.ENTER and closed:
            closed -= 1
        elif kind == kinds.ENTER:
            site = REGISTRY.functions[events[number][1]]
            if (site.file, site.name) == (code.co_filename, code.co_name):
                return number
    return None


def _bound(events: Sequence[Event], function: int) -> Iterator[Bound]:
    depth = 0
    for event in events:
        if event[0] == kinds.ENTER:
            depth += 1
        elif event[0] == kinds.EXIT:
            depth -= 1
        elif depth == 0 and event[0] in (kinds.SEE, kinds.SEE_ALL):
            for number, element, seen in event[1] if event[0] == kinds.SEE_ALL else (event[1:],):
                binding = REGISTRY.bindings[number]
                site = binding.site
                if binding.owner == function and not element and site.kind != "return":
                    is_argument = site.kind == "argument"
                    yield Bound(site.name, site.line, is_argument, tuple(seen[0]), seen[1])
