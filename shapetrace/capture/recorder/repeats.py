"""Equal calls: learn one in full, and for the others check that they did the same.

Looking at every operator in Python costs more than a small model's own work. Twelve equal
layers run the same operators, so the first is watched operator by operator, and of the
others only what rewritten code reports is compared with it, statement by statement: which
function, which variable, which shape. As long as all of it agrees, the operators and the
memory of the first stand for the call; where anything differs, watching resumes on the
spot and the trace says what it may have missed.

Which calls are equal for certain is said by `equal_calls`. A call that read a tensor's
value, ran anyone else's code, left memory behind that nobody named, or is followed by
autograd, is never taken as an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.equal_calls import is_own_code
from shapetrace.capture.recorder.events import Event
from shapetrace.capture.recorder.storages import MemoryBlock
from shapetrace.capture.source.registry import REGISTRY

Expected = tuple[int, tuple[int, ...] | None, int | None]


@dataclass(frozen=True, slots=True)
class Template:
    """What a call did.

    Attributes:
        module: Number of the module that was called.
        events: Everything from the call's beginning to its end.
        expected: What rewritten code reports of an equal call, in order: number of the
            function (and no shape) or of the binding, its shape, and the block to adopt
            when the tensor's memory outlives the call.
        position: For each of `expected`, the index of its event.
        arguments: Blocks of the tensor arguments, in order.
        parameters: Blocks of the module's parameters and buffers, in order; empty when no
            event speaks of any.
        born: Blocks allocated inside the call.
    """

    module: int
    events: tuple[Event, ...]
    expected: tuple[Expected, ...]
    position: tuple[int, ...]
    arguments: tuple[int | None, ...]
    parameters: tuple[int | None, ...]
    born: range


@dataclass(slots=True)
class Replay:
    """An equal call that is running.

    Attributes:
        template: What it should do.
        at: How much of `Template.expected` it has done.
        depth: How many calls are open, itself included.
        blocks: The blocks of this call for those of the template.
        freed: Blocks of earlier that were released meanwhile.
    """

    template: Template
    module: int
    blocks: dict[int, int]
    at: int = 0
    depth: int = 1
    freed: list[int] = field(default_factory=list)


def learn(
    module: int,
    events: Sequence[Event],
    born: range,
    arguments: Iterable[int | None],
    parameters: Iterable[int | None],
) -> Template | None:
    """A template of a call that has ended well; None when it can't stand for others."""
    freed = {kinds.freed(event) for event in events}
    outliving = {block for block in born if block not in freed}
    expected: list[Expected] = []
    position: list[int] = []
    for index, event in enumerate(events):
        if _forbids_repeats(event):
            return None
        for item in _reports(event, outliving):
            expected.append(item)
            position.append(index)
    if outliving:
        return None
    held = tuple(parameters)
    spoken = {block for event in events for block in _blocks(event)}
    return Template(
        module=module,
        events=tuple(events),
        expected=tuple(expected),
        position=tuple(position),
        arguments=tuple(arguments),
        parameters=held if spoken.intersection(held) else (),
        born=born,
    )


def _blocks(event: Event) -> Iterator[int | None]:
    """The blocks of tensors that an event speaks of."""
    yield kinds.freed(event)
    for _, _, (_, _, block, *_) in kinds.sightings(event):
        yield block


def _forbids_repeats(event: Event) -> bool:
    function = kinds.begun_function(event)
    if function is not None:
        return not is_own_code(REGISTRY.functions[function].file)
    unsure = event[0] in (kinds.FAILED_OP, kinds.LOST, kinds.REPEAT)
    return unsure or kinds.read_values(event)


def _reports(event: Event, outliving: set[int]) -> Iterator[Expected]:
    function = kinds.begun_function(event)
    if function is not None:
        yield function, None, None
    for binding, _, (shape, _, block, *_) in kinds.sightings(event):
        yield binding, shape, _adopted(block, outliving)


def _adopted(block: int | None, outliving: set[int]) -> int | None:
    if block in outliving:
        outliving.discard(block)
        return block
    return None


def write_out(
    events: Sequence[Event], blocks: list[MemoryBlock], submodules: dict[int, list[int]]
) -> list[Event]:
    """The events with every repeat replaced by what it stands for.

    Args:
        events: As recorded.
        blocks: The blocks that were met; those that only repeats had are appended.
        submodules: For each repeated module, the numbers of all modules in it, in order.

    Returns:
        Events without repeats.
    """
    written: list[Event] = []
    for event in events:
        repeat = kinds.repeated(event)
        if repeat is None:
            written.append(event)
            continue
        template, module, known, end = repeat
        modules = dict(zip(submodules[template.module], submodules[module], strict=True))
        copy = _Copy(blocks, dict(known), modules)
        written.extend(copy.event(old) for old in template.events[:end])
    return written


class _Copy:
    def __init__(
        self, blocks: list[MemoryBlock], known: dict[int, int], modules: dict[int, int]
    ) -> None:
        self._blocks, self._known, self._modules = blocks, known, modules

    def event(self, event: Event) -> Event:
        """An event of the template as it was in this call."""
        return kinds.renamed(event, self._block, self._new, self._module)

    def _block(self, block: int) -> int:
        return self._known.get(block, block)

    def _module(self, module: Any) -> Any:
        return self._modules.get(module, module)

    def _new(self, block: int) -> int:
        """The copy's own block for one that the template allocated."""
        if block not in self._known:
            self._known[block] = len(self._blocks)
            self._blocks.append(self._blocks[block])
        return self._known[block]
