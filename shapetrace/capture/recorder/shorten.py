"""The events of a run that was stopped, where there are more than anybody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.events import Event

_FIRST = 3000
_LAST = 600


def shortened(events: Sequence[Event]) -> tuple[Sequence[Event], str]:
    """The beginning and the end of a run, and all calls that are open at either.

    In each call that something is left out of stands LOST: what it computed is not known
    in full.

    Args:
        events: Of a run that an interrupt ended, with repeats written out.

    Returns:
        The events that are kept, and a note on how many are left out; empty where none is.
    """
    last = max(_FIRST, quiet_tail(events) - _LAST)
    between = last - _FIRST
    if between <= _LAST:
        return events, ""
    first = events[:_FIRST]
    met = {block for event in first if event[0] == kinds.OP for block in event[-1]}
    kept = [*first, *_outline(events, _FIRST, last, met), *events[last:]]
    note = f"{between:,} of {len(events):,} events in the middle of this interrupted run"
    return kept, f"{note} are left out (statements, operators, memory given back)"


def _outline(events: Sequence[Event], start: int, end: int, met: set[int]) -> Iterator[Event]:
    """Of a stretch: the calls from before that end in it, and those that it leaves open."""
    opened: list[Event] = []
    yield (kinds.LOST,)
    for number in range(start, end):
        event = events[number]
        if event[0] == kinds.ENTER:
            opened.append(event)
        elif event[0] == kinds.EXIT:
            known = [place for place, call in enumerate(opened) if call[1] == event[1]]
            if known:
                del opened[known[-1] :]
            elif not opened:
                yield event
                yield (kinds.LOST,)
        elif event[0] == kinds.FREE and event[1] in met:
            yield event
    for call in opened:
        yield call
        yield (kinds.LOST,)


def quiet_tail(events: Sequence[Event]) -> int:
    """Clock after which only calls ended: there the exception was on its way out."""
    clock = len(events)
    while clock and events[clock - 1][0] in (kinds.EXIT, kinds.FREE):
        clock -= 1
    return clock
