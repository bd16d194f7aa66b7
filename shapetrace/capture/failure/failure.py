"""What is kept of an exception, so that it can be explained from the trace alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from shapetrace.capture.failure.frame_reader import StorageOf
from shapetrace.capture.failure.lineage import Lineage
from shapetrace.capture.failure.operand_origins import with_origins
from shapetrace.capture.failure.operands import Operands
from shapetrace.capture.failure.traceback import FramePlace, blamed, callers, places
from shapetrace.capture.failure.trial import would_run
from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.events import Event
from shapetrace.capture.source.discover import is_machinery
from shapetrace.explain.rules import find_clashes
from shapetrace.installed import is_installed
from shapetrace.records.trace import Failure, Shape

_CALLERS = 8


def blame(error: BaseException, events: Sequence[Event], storage_of: StorageOf) -> Failure:
    """Where an exception came from, and what went into the expression that raised it.

    Call it while the recording's storages are still watched and its mode is off.

    Args:
        error: The exception, with its traceback.
        events: What was recorded up to it.
        storage_of: The number of a tensor's block; None for one that was not met.
    """
    kind, message, clock = type(error).__name__, str(error), len(events)
    found = places(error)
    number = blamed(found)
    if number is None:
        return Failure(type_name=kind, message=message, scope=0, file="", line=0, at=clock)
    place = found[number]
    plain = Failure(
        type_name=kind,
        message=message,
        scope=0,
        file=place.file,
        line=place.line,
        at=clock,
        statement=place.text,
    )
    try:
        return _detailed(plain, found, number, events, storage_of)
    except Exception:  # noqa: BLE001 - an explanation must not hide what it explains
        return plain


def _detailed(
    plain: Failure,
    found: list[FramePlace],
    number: int,
    events: Sequence[Event],
    storage_of: StorageOf,
) -> Failure:
    place = found[number]
    name, shapes = _failed_operator(events)
    reader = Operands(place, found[number + 1 :], storage_of, shapes)
    operands = reader.read()
    told = replace(
        plain,
        expression=_source(place),
        operation=reader.operation,
        operator=name,
        operands=tuple(operands),
        callers=tuple(_nearest(callers(found, number))),
        raised=_innermost(found, number),
    )
    clashes = find_clashes(told)
    told = with_origins(told, clashes, Lineage(found, number, events))
    offered = dict.fromkeys(fix for clash in clashes for fix in clash.fixes)
    fixes = (fix.text for fix in offered if would_run(fix, place.node, place.frame))
    return replace(told, fixes=tuple(fixes))


def _nearest(calls: list[FramePlace]) -> list[tuple[str, int, str]]:
    """The nearest calls, outermost first, and the nearest of somebody's own code."""
    kept = calls[-_CALLERS:]
    own = [call for call in calls[:-_CALLERS] if not is_installed(call.file)]
    if own and all(is_installed(call.file) for call in kept):
        kept = [own[-1], *kept]
    return [(call.file, call.line, call.text) for call in kept]


def _innermost(found: list[FramePlace], number: int) -> tuple[str, int, str] | None:
    """The `raise` or `assert` of a library, below the line that is blamed."""
    below = list(takewhile(lambda step: not is_machinery(step.file), found[number:]))
    last = below[-1]
    if last is found[number] or not isinstance(last.statement, ast.Raise | ast.Assert):
        return None
    return last.file, last.line, last.text


def _source(place: FramePlace) -> str:
    return ast.unparse(place.node) if place.node is not None else ""


def _failed_operator(events: Sequence[Event]) -> tuple[str, list[Shape]]:
    """The operator that raised, if one did, and its inputs' shapes."""
    for event in reversed(events):
        failed = kinds.failed_operator(event)
        if failed is not None:
            name, inputs = failed
            return name, [tuple(shape) for shape in inputs if shape is not None]
        if event[0] not in (kinds.EXIT, kinds.FREE, kinds.MARK):
            break
    return "", []
