"""What a recording appends to while the model runs, cheaply; `assemble` reads it after.

An event is a tuple that begins with its kind: hundreds are made for each layer, and a tuple
is made five times as fast as an object with fields. In it lie only numbers, strings, dtypes,
devices and plain tuples of those (no `torch.Size`, no list, no object of ours), so that the
garbage collector lets go of an event when it first sees it, and never walks the long list of
them; what few calls of the model need (REPEAT, HOLD) may be more. So its parts go by their places, which
are written down here and which the functions below read for everyone else. Once repeats are
written out (`repeats`), an event's index in the list is its clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from shapetrace.capture.recorder.plans import PLANS

ENTER = 0
"""``(ENTER, function, module)``: function number; index of the module, its class or None."""
EXIT = 1
"""``(EXIT, function)``"""
SEE = 2
"""``(SEE, binding, element, Seen)``: the end of a statement that bound a tensor."""
SEE_ALL = 3
"""``(SEE_ALL, ((binding, element, Seen), ...))``: several tensors bound by one statement."""
MARK = 4
"""``(MARK,)``: the end of a statement that bound no tensor."""
OP = 5
"""``(OP, plan number, inputs, outputs, attributes, dtype, phase, sequence, new blocks)``"""
FREE = 6
"""``(FREE, block)``"""
FAILED_OP = 7
"""``(FAILED_OP, name, inputs)``: an operator that raised."""
REPEAT = 8
"""``(REPEAT, Template, module, blocks, end)``: what an equal call did, up to an index."""
LOST = 9
"""``(LOST,)``: a repeat turned out different; operators just before may be missing."""
HOLD = 10
"""``(HOLD, ((text, value, problem), ...))``: what the parts in braces of annotations are worth."""

STEP = 11
"""``(STEP, times)``: a step begins, before which so many are left out."""

Event = tuple[Any, ...]

Seen = tuple[tuple[int, ...], torch.dtype, int | None, bool, str, "torch.device | None"]
"""What is kept of a tensor: shape, dtype, block, whether it requires a gradient, layout when
it is not strided, device when it has no block."""

Sighting = tuple[int, str, Seen]
"""A binding, the element inside its value, and what was seen there."""


def sightings(event: Event) -> tuple[Sighting, ...]:
    """The tensors that an event reports, each with where it was bound."""
    if event[0] == SEE:
        return (event[1:],)
    found: tuple[Sighting, ...] = event[1] if event[0] == SEE_ALL else ()
    return found


def begun_function(event: Event) -> int | None:
    """The number of the function that begins with an event."""
    return event[1] if event[0] == ENTER else None


def freed(event: Event) -> int | None:
    """The block that was released."""
    return event[1] if event[0] == FREE else None


def failed_operator(event: Event) -> tuple[str, tuple[Any, ...]] | None:
    """The name and the inputs' shapes of an operator that raised."""
    return event[1:] if event[0] == FAILED_OP else None


def read_values(event: Event) -> bool:
    """Whether an operator looked at the values of a tensor."""
    return event[0] == OP and PLANS[event[1]].by_value


def repeated(event: Event) -> tuple[Any, int, dict[int, int], int] | None:
    """What a REPEAT stands for: template, module, blocks by the template's, and up to where."""
    return event[1:] if event[0] == REPEAT else None


def left_out(event: Event) -> int | None:
    """How many steps are left out before one that begins."""
    return event[1] if event[0] == STEP else None


def length(event: Event) -> int:
    """How many clocks an event takes once repeats are written out."""
    return event[4] if event[0] == REPEAT else 1


def renamed(
    event: Event,
    block: Callable[[int], int],
    new: Callable[[int], int] | None = None,
    module: Callable[[Any], Any] | None = None,
) -> Event:
    """The event with other numbers, as it was in another place of the run.

    Args:
        event: Any event.
        block: Gives the number of a block of memory that was seen, released or repeated.
        new: Gives the number of a block that an operator allocated; as it is when None.
        module: Gives what ENTER says of a module; as it is when None.
    """

    def seen(sighting: Sighting) -> Sighting:
        binding, element, (shape, dtype, old, gradient, layout, device) = sighting
        number = None if old is None else block(old)
        return binding, element, (shape, dtype, number, gradient, layout, device)

    kind = event[0]
    if kind == SEE:
        return SEE, *seen(event[1:])
    if kind == SEE_ALL:
        return SEE_ALL, tuple(seen(sighting) for sighting in event[1])
    if kind == FREE:
        return FREE, block(event[1])
    if kind == OP and new is not None:
        return *event[:-1], tuple(new(old) for old in event[-1])
    if kind == ENTER and module is not None:
        return ENTER, event[1], module(event[2])
    if kind == REPEAT:
        _, template, number, blocks, end = event
        return REPEAT, template, number, {old: block(now) for old, now in blocks.items()}, end
    return event
