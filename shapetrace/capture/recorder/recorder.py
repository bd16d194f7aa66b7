"""One run's events, and the equal calls in it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.equal_calls import CallKey, call_key
from shapetrace.capture.recorder.events import Event, Seen
from shapetrace.capture.recorder.operators import OperatorMode
from shapetrace.capture.recorder.repeats import Replay, Template, learn
from shapetrace.capture.recorder.storages import Storages
from shapetrace.capture.values import members
from shapetrace.capture.values.quietly import PLAIN, quietly
from shapetrace.capture.values.tensors_in import SCALARS, Sizes, elements, sizes_of
from shapetrace.records.trace import StorageKind


@dataclass(frozen=True, slots=True)
class Learning:
    """A call that is watched to stand for equal ones.

    Attributes:
        key: What equal calls have in common.
        module: Number of its module.
        depth: How many calls are open in it, itself included.
        start: Index of its first event.
        met: How many blocks were known before.
        arguments: Blocks of its tensor arguments.
    """

    key: CallKey
    module: int
    depth: int
    start: int
    met: int
    arguments: tuple[int | None, ...]


class Recorder:
    """Events of one run, in the thread that made the recorder.

    Attributes:
        events: What happened, in order.
        append: Appends an event.
        storages: The memory that was met.
        sizes: The sizes that were met, so that equal ones are one object.
        live: The storages that exist now, by address.
        mode: Sees the operators; None when they are not wanted.
        modules: Module numbers by identity.
        opaque: Types that are known to hold no tensors.
        passed: Numbers of functions that were entered and are not seen inside of.
        twins: The modules whose calls may be equal to those of another.
        thread: Whose reports are heard.
        depth: How many calls are open.
        replay: The equal call that is running, if one is.
        learning: The call that is watched to stand for others, if one is.
    """

    __slots__ = (
        "_members",
        "_templates",
        "_unmet",
        "append",
        "depth",
        "events",
        "learning",
        "live",
        "mode",
        "modules",
        "opaque",
        "passed",
        "replay",
        "sizes",
        "storages",
        "thread",
        "twins",
    )

    def __init__(
        self,
        modules: Mapping[int, int],
        members: Sequence[nn.Module] = (),
        twins: frozenset[int] = frozenset(),
        *,
        operators: bool = True,
    ) -> None:
        """Take what is known of the model.

        Args:
            modules: Module numbers by identity.
            members: The modules, by number.
            twins: The modules whose calls may be equal to those of another.
            operators: Whether to see operators, or statements alone.
        """
        self.events: list[Event] = [(kinds.MARK,)]
        self.append = self.events.append
        self.storages = Storages(self._freed)
        self.live = self.storages.live
        self.sizes = Sizes()
        self.mode = OperatorMode(self.events, self.storages, self.sizes) if operators else None
        self.modules = modules
        self.opaque: set[type] = set(SCALARS)
        self.passed: dict[int, None] = {}
        self.twins = twins if operators else frozenset()
        self.thread = threading.get_ident()
        self.depth = 0
        self.replay: Replay | None = None
        self.learning: Learning | None = None
        self._members = members
        self._templates: dict[CallKey, Template | None] = {}
        # With operators seen, a block that none of them made was there before.
        self._unmet: StorageKind = "input" if operators else "activation"

    def close(self) -> None:
        """Stop watching memory."""
        self.storages.close()

    def meet(self, storage: torch.UntypedStorage) -> int:
        """The number of a block that no operator was seen to make."""
        return self.storages.meet(storage, self._unmet)

    def seen(self, tensor: torch.Tensor) -> Seen:
        """What is kept of a tensor; of a subclass, without running the user's code."""
        if type(tensor) in PLAIN and tensor.layout is torch.strided and not tensor.is_nested:
            block = self.storages.index(tensor, self._unmet)
            device = tensor.device if block is None else None
            return self.sizes[tensor.shape], tensor.dtype, block, tensor.requires_grad, "", device
        return quietly(self._seen_oddly, tensor)

    def _seen_oddly(self, tensor: torch.Tensor) -> Seen:
        strided = tensor.layout is torch.strided
        layout = "" if strided else str(tensor.layout).removeprefix("torch.")
        layout = "nested" if strided and tensor.is_nested else layout
        block = self.storages.index(tensor, self._unmet)
        sizes = sizes_of(tensor)
        return sizes, tensor.dtype, block, tensor.requires_grad, layout, tensor.device

    def see_inside(self, bound: Iterable[tuple[int, Any]]) -> None:
        """Several names were bound by one statement, or one to a container."""
        found: list[tuple[int, str, torch.Tensor]] = []
        for binding, value in bound:
            if type(value) in PLAIN:
                found.append((binding, "", value))
            else:
                found += [(binding, path, item) for path, item in elements(value)]
        if self.replay is not None and all(self._continues(*item) for item in found):
            return
        seen = tuple([(binding, path, self.seen(item)) for binding, path, item in found])
        self.append((kinds.SEE_ALL, seen) if seen else (kinds.MARK,))

    # Equal calls.

    def begin(self, owner: object, arguments: tuple[Any, ...]) -> None:
        """At the start of a call that may be equal to another: learn it, or check it."""
        number = self.modules.get(id(owner))
        if number not in self.twins or self.replay is not None or self.learning is not None:
            return
        if torch.is_grad_enabled():
            return  # autograd keeps tensors that no statement names
        function = next(
            number
            for number in map(kinds.begun_function, reversed(self.events))
            if number is not None
        )
        key = call_key(self._members[number], function, arguments)
        if key is None:
            return
        blocks = tuple(self.storages.index(item, "input") for _, item in elements(arguments))
        key += tuple(blocks.index(block) for block in blocks)  # which of them share memory
        if key not in self._templates:
            met = len(self.storages.blocks)
            # By place: this runs at each call of a module while the model does.
            self.learning = Learning(key, number, self.depth, len(self.events), met, blocks)
        elif (template := self._templates[key]) is not None:
            self._replay(template, number, blocks)

    def _replay(self, template: Template, number: int, blocks: tuple[int | None, ...]) -> None:
        if self.mode is None or not self.mode.pause():
            return
        pairs = list(zip(template.arguments, blocks, strict=True))
        if template.parameters:
            pairs += zip(template.parameters, self._parameters(number), strict=True)
        known = {old: new for old, new in pairs if old is not None and new is not None}
        self.replay = Replay(template, number, known)

    def _parameters(self, number: int) -> tuple[int | None, ...]:
        module = self._members[number]
        tensors = [*members.parameters(module), *members.buffers(module)]
        return tuple(self.storages.index(tensor, "parameter") for tensor in tensors)

    def end_learning(self, learning: Learning) -> None:
        """The watched call has ended: keep it as a template if it can be one."""
        self.learning = None
        born = range(learning.met, len(self.storages.blocks))
        parameters = self._parameters(learning.module)
        events = self.events[learning.start :]
        template = learn(learning.module, events, born, learning.arguments, parameters)
        self._templates[learning.key] = template

    def agrees(self, replay: Replay, number: int, value: torch.Tensor | None) -> bool:
        """Check one report of an equal call; where it differs, watch again from here on."""
        expected = replay.template.expected
        if replay.at < len(expected):
            wanted, shape, adopted = expected[replay.at]
            if wanted == number and _matches(value, shape):
                replay.at += 1
                if adopted is not None and value is not None:
                    block = self.storages.index(value, "activation")
                    if block is not None:
                        replay.blocks[adopted] = block
                return True
        self._diverge(replay)
        return False

    def _continues(self, binding: int, _: str, value: torch.Tensor) -> bool:
        replay = self.replay
        return replay is not None and self.agrees(replay, binding, value)

    def end_replay(self, replay: Replay) -> None:
        """The equal call has ended, by returning or raising."""
        if replay.at == len(replay.template.expected):
            self._stop_replay(replay, len(replay.template.events))
        else:
            self._diverge(replay)

    def _diverge(self, replay: Replay) -> None:
        """The call is not what it was taken for: keep what agreed, and watch again."""
        template = replay.template
        agreed = replay.at < len(template.position)
        self._stop_replay(replay, template.position[replay.at] if agreed else len(template.events))
        for key, known in self._templates.items():
            if known is template:
                self._templates[key] = None
        self.depth += max(replay.depth, 1) - 1
        self.append((kinds.LOST,))

    def _stop_replay(self, replay: Replay, end: int) -> None:
        self.replay = None
        template = replay.template
        self.append((kinds.REPEAT, template, replay.module, replay.blocks, end))
        if replay.freed:
            done = map(kinds.freed, template.events[:end])
            written = {replay.blocks.get(block, block) for block in done if block is not None}
            self.events.extend(
                (kinds.FREE, block) for block in replay.freed if block not in written
            )
        if self.mode is not None:
            self.mode.resume()

    def _freed(self, block: int) -> None:
        if self.replay is not None:
            self.replay.freed.append(block)
        else:
            self.append((kinds.FREE, block))


def _matches(value: torch.Tensor | None, shape: tuple[int, ...] | None) -> bool:
    if value is None:
        return shape is None
    try:
        return value.shape == shape
    except RuntimeError:  # a nested tensor
        return sizes_of(value) == shape
