"""A recording of steps that repeat: those that lie on a line are left out as they come.

Whoever runs the steps says where one ends, by `StepRecording.step`. A step whose events are
those of the step before with every number moved by as much as last time is what the line
through the earlier ones says, so the step before it can go; see `trace.folds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.events import Event, Seen
from shapetrace.capture.recording import Recording
from shapetrace.records.trace import Fold, Trace

_PLAIN = (kinds.ENTER, kinds.EXIT, kinds.MARK)
"""Events that hold no number."""


@dataclass(frozen=True, slots=True)
class _Flat:
    """A step's events taken apart.

    Attributes:
        form: All that must be equal in two steps.
        sizes: Numbers that may move from step to step.
        blocks: Numbers of blocks of memory.
        met: Blocks that were known when the step began.
    """

    form: tuple[Any, ...]
    sizes: tuple[int, ...]
    blocks: tuple[int, ...]
    met: int

    def moved_from(self, other: _Flat) -> tuple[tuple[int, ...], ...] | None:
        """By how much each number moved; None where that is no step of the same form."""
        if self.form != other.form or len(self.sizes) != len(other.sizes):
            return None
        grown = self.met - other.met
        blocks = tuple(new - old for new, old in zip(self.blocks, other.blocks, strict=True))
        if any(moved not in (0, grown) for moved in blocks):
            return None
        sizes = tuple(new - old for new, old in zip(self.sizes, other.sizes, strict=True))
        return sizes, blocks, (grown,)


class StepFolder:
    """Leaves out steps from a list of events while it grows."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._start: int | None = None
        self._met = 0
        self._last: tuple[int, _Flat] | None = None
        self._moved: tuple[tuple[int, ...], ...] | None = None
        self._times = 0
        self._known: frozenset[int] = frozenset()

    @property
    def templates(self) -> frozenset[int]:
        """The templates that the last step was told by."""
        return self._known

    def boundary(self, met: int) -> bool:
        """A step has ended and another begins; whether one was left out.

        Args:
            met: How many blocks are known now.
        """
        left_out = self._start is not None and self._end(self._start)
        self._start, self._met = len(self._events), met
        self._events.append((kinds.STEP, 0))
        return left_out

    def close(self) -> None:
        """The last step has ended."""
        if self._start is not None:
            self._end(self._start)
            self._settle(len(self._events))
            self._start = None

    def _end(self, start: int) -> bool:
        step = self._events[start:]
        templates = _templates(step)
        flat = _flat(step, self._met, templates, self._known)
        self._known = frozenset(templates)
        before = self._last
        moved = None if before is None else flat.moved_from(before[1])
        if before is None or moved is None or moved != self._moved:
            self._settle(start)
            self._last, self._moved = (start, flat), moved
            return False
        del self._events[before[0] : start]
        self._times += 1
        self._events[before[0]] = (kinds.STEP, self._times)
        self._last = (before[0], flat)
        return True

    def _settle(self, end: int) -> None:
        """A run of steps is over: its last now follows its first, in what it refers to too."""
        if self._times and self._last is not None and self._moved is not None:
            start, flat = self._last
            moved = _Moved(flat.met, self._moved[2][0], self._times)
            self._events[start:end] = [
                kinds.renamed(event, moved.block) for event in self._events[start:end]
            ]
        self._times = 0


@dataclass(frozen=True, slots=True)
class _Moved:
    """Renames the blocks of the step before, which was left out, to those of the first step."""

    met: int
    grown: int
    times: int

    def block(self, block: int) -> int:
        if not self.met - self.grown <= block < self.met:
            return block
        return block - self.times * self.grown


def _templates(step: Iterable[Event]) -> dict[int, int]:
    """The templates that a step's repeats were told by, numbered as they come."""
    found: dict[int, int] = {}
    for event in step:
        repeat = kinds.repeated(event)
        if repeat is not None:
            found.setdefault(id(repeat[0]), len(found))
    return found


def _flat(
    step: Sequence[Event], met: int, templates: dict[int, int], known: frozenset[int]
) -> _Flat:
    """A step's events taken apart.

    A template that was learned in the step itself repeats events that stand in it; it counts
    by its number. One of an earlier step counts as itself.
    """
    form: list[Any] = []
    sizes: list[int] = []
    blocks: list[int] = []
    for event in step:
        form.append(event[0])
        seen = kinds.sightings(event)
        repeat, block = kinds.repeated(event), kinds.freed(event)
        for binding, path, tensor in seen:
            form.append((binding, path))
            _see(tensor, form, sizes, blocks)
        if repeat is not None:
            template, module, renamed, end = repeat
            number = id(template)
            form.append(number if number in known else ("new", templates[number]))
            form.append((module, end, len(renamed)))
            blocks += [block for pair in renamed.items() for block in pair]
        elif block is not None:
            blocks.append(block)
        elif event[0] == kinds.OP:
            _op(event, form, sizes, blocks)
        elif event[0] in _PLAIN:
            form.append(event[1:])
        elif not seen and event[0] != kinds.STEP:
            form.append(id(event))
    return _Flat(tuple(form), tuple(sizes), tuple(blocks), met)


def _see(seen: Seen, form: list[Any], sizes: list[int], blocks: list[int]) -> None:
    shape, dtype, block, *rest = seen
    form.append((len(shape), dtype, block is None, *rest))
    sizes.extend(shape)
    if block is not None:
        blocks.append(block)


def _op(event: Event, form: list[Any], sizes: list[int], blocks: list[int]) -> None:
    _, plan, inputs, outputs, attributes, dtype, phase, sequence, new = event
    form.append((plan, dtype, phase, sequence, len(new)))
    for shape in (*inputs, *outputs):
        form.append(None if shape is None else len(shape))
        sizes.extend(shape or ())
    for name, value in attributes:
        whole = type(value) is int
        form.append((name, None if whole else str(value)))
        if whole:
            sizes.append(value)
    blocks.extend(new)


class StepRecording(Recording):
    """A recording of steps; `step` is to be called where one ends."""

    _folder: StepFolder | None = None

    def step(self) -> None:
        """One step has ended and another may begin."""
        recorder = self._recorder
        if self._folder is None:
            self._folder = StepFolder(recorder.events)
        if self._folder.boundary(len(recorder.storages.blocks)):
            used, known = self._folder.templates, recorder._templates  # noqa: SLF001 - one package
            for key in [key for key, item in known.items() if item and id(item) not in used]:
                del known[key]

    def _finish(self) -> Trace:
        if self._folder is not None:
            self._folder.close()
        folds = tuple(_folds(self._recorder.events))
        return replace(super()._finish(), folds=folds)


def _folds(events: Iterable[Event]) -> Iterable[Fold]:
    """Where the trace's clock will be at each fold, once repeats are written out."""
    clock = start = 0
    for event in events:
        times = kinds.left_out(event)
        if times is not None:
            if times:
                yield Fold(start, clock - start, times)
            start = clock
        clock += kinds.length(event)
