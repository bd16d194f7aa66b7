"""Events to a `Trace`: pure bookkeeping, after the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.calls import Calls, ModuleNames
from shapetrace.capture.recorder.events import Event, Seen
from shapetrace.capture.recorder.plans import PLANS, Attributes, Shapes
from shapetrace.capture.recorder.shorten import quiet_tail
from shapetrace.capture.recorder.storages import MemoryBlock
from shapetrace.capture.source.braces import Held
from shapetrace.capture.source.registry import REGISTRY, BoundSite
from shapetrace.records.folds import Value
from shapetrace.records.trace import (
    OpRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
)

UNSEEN = "shapetrace.unseen"
"""Stands in a trace for operators that ran while nobody looked."""


@dataclass(slots=True)
class Tables:
    """The tables of a trace, which is still to be judged."""

    sites: list[Site]
    bindings: list[BoundSite]
    scopes: list[Scope]
    functions: list[int]
    tensors: list[TensorRecord]
    ops: list[OpRecord]
    storages: list[StorageRecord]
    held: dict[int, Held]
    """By call, what the parts in braces of its annotations are worth."""
    numbers: dict[int, int]
    """Numbers of storages by those of the blocks that were met while recording."""


def assemble(
    events: Sequence[Event],
    blocks: Sequence[MemoryBlock],
    modules: Sequence[ModuleNames],
    target: str,
    *,
    before: int = 0,
    beside: Iterable[int] = (),
    failed: bool = False,
    whole: bool = False,
) -> Tables:
    """Read the events of a run.

    Args:
        events: What a `Recorder` appended.
        blocks: The storages that it met.
        modules: The model's modules, by the index that events carry.
        target: What the run is called, for the root scope.
        before: How many of the blocks were met before the run; they keep their numbers.
        beside: Blocks that belong to the run though no event need speak of them.
        failed: Whether the run ended by raising.
        whole: Whether scopes in which nothing happened are kept.

    Returns:
        The trace's tables.
    """
    reader = _Reader(blocks, Calls(modules, target, len(events), whole=whole))
    reader.numbers.update((number, number) for number in range(before))
    for clock, event in enumerate(events):
        reader.read(clock, event)
    for block in sorted(beside):
        reader.number_of(block)
    reader.calls.finish(quiet_tail(events) if failed else len(events))
    return reader.tables()


class _Reader:
    def __init__(self, blocks: Sequence[MemoryBlock], calls: Calls) -> None:
        self.calls = calls
        self.numbers: dict[int, int] = {}
        self._born: dict[int, int] = {}
        self._died: dict[int, int] = {}
        self._blocks = blocks
        self._sites: dict[int, int] = {}
        self._forward: dict[int, int] = {}
        self._names: dict[Any, str] = {}
        self._tensors: list[TensorRecord] = []
        self._ops: list[OpRecord] = []
        self._looks: dict[Any, tuple[tuple[int, ...], str, int]] = {}
        self._operators: dict[Any, tuple[Any, ...]] = {}

    def tables(self) -> Tables:
        """What was read."""
        return Tables(
            sites=[REGISTRY.bindings[binding].site for binding in self._sites],
            bindings=[REGISTRY.bindings[binding] for binding in self._sites],
            scopes=self.calls.scopes,
            functions=self.calls.functions,
            tensors=self._tensors,
            ops=self._ops,
            storages=[self._storage(block) for block in self.numbers],
            held=self.calls.held,
            numbers=self.numbers,
        )

    def _storage(self, block: int) -> StorageRecord:
        nbytes, kind, device = self._blocks[block]
        return StorageRecord(
            nbytes, kind, self._name(device), self._born.get(block, 0), self._died.get(block)
        )

    def read(self, clock: int, event: Event) -> None:
        match event[0]:
            case kinds.SEE | kinds.SEE_ALL:
                for binding, element, seen in kinds.sightings(event):
                    self._tensor(clock, binding, element, seen)
                self.calls.now.last = clock
            case kinds.MARK:
                self.calls.now.last = clock
            case kinds.OP:
                self._op(clock, event)
            case kinds.ENTER:
                _, function, module = event
                self.calls.enter(clock, function, module)
            case kinds.EXIT:
                _, function = event
                self.calls.leave(clock, function)
            case kinds.FREE:
                _, block = event
                self._died.setdefault(block, clock)
            case kinds.HOLD:
                _, worths = event
                self.calls.hold(worths)
            case kinds.LOST:
                self._lost(clock)

    def _tensor(self, clock: int, binding: int, element: str, seen: Seen) -> None:
        shape, dtype, block, requires_grad, layout, device = seen
        looks = self._looks.get((shape, dtype, layout))
        if looks is None:
            strided = not layout and min(shape, default=0) >= 0
            nbytes = prod(shape) * dtype.itemsize if strided else 0
            looks = self._looks[shape, dtype, layout] = tuple(shape), self._name(dtype), nbytes
        sizes, type_name, nbytes = looks
        # By place: one is made for each value that was seen, and keywords would cost time.
        self._tensors.append(
            TensorRecord(
                self._sites.setdefault(binding, len(self._sites)),
                self.calls.here(),
                self.calls.now.last,
                clock,
                sizes,
                type_name,
                self._name(device if block is None else self._blocks[block][2]),
                nbytes,
                None if block is None else self.number_of(block),
                element,
                requires_grad,
                layout,
            )
        )

    def _lost(self, clock: int) -> None:
        """Operators may have run unseen; they are listed, never silently zero."""
        self._ops.append(
            OpRecord(
                name=UNSEEN, scope=self.calls.here(), at=clock, inputs=(), outputs=(), dtype=""
            )
        )

    def _op(self, clock: int, event: Event) -> None:
        _, number, inputs, outputs, attributes, dtype, phase, sequence, new = event
        of = number, inputs, outputs, attributes, dtype
        operator = self._operators.get(of)
        if operator is None:
            operator = self._operators[of] = self._operator(*of)
        name, made, inputs, outputs, type_name, attributes = operator
        nbytes = 0
        for block in new:
            self.number_of(block)
            if made:
                self._born[block] = clock
                nbytes += self._blocks[block][0]
        scope = self._scope_of(phase, sequence)
        # By place, as tensors are.
        self._ops.append(
            OpRecord(name, scope, clock, inputs, outputs, type_name, attributes, phase, nbytes)
        )

    def _operator(
        self, number: int, inputs: Shapes, outputs: Shapes, attributes: Attributes, dtype: Any
    ) -> tuple[Any, ...]:
        """What all calls of an operator with the same sizes have in common."""
        plan = PLANS[number]
        return (
            plan.name,
            plan.result != "input",  # else its memory was there, and is met only now
            tuple(None if shape is None else tuple(shape) for shape in inputs),
            tuple(() if shape is None else tuple(shape) for shape in outputs),
            self._name(dtype) if dtype is not None else "",
            tuple((name, _plain(value)) for name, value in attributes if value is not None),
        )

    def _scope_of(self, phase: str, sequence: int) -> int:
        """Where an operator belongs."""
        if phase == "backward":
            # A node created for a forward operator took the number before the one that the
            # operator saw; the gradient's operators belong where the operator ran.
            scope = self._forward.get(sequence + 1)
            return self.calls.here() if scope is None else scope
        scope = self.calls.here()
        if sequence >= 0:
            self._forward.setdefault(sequence, scope)
        return scope

    def number_of(self, block: int) -> int:
        """Blocks are numbered as they appear, however they were met while recording."""
        return self.numbers.setdefault(block, len(self.numbers))

    def _name(self, kind: torch.dtype | torch.device | None) -> str:
        """The name of a dtype or a device."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = str(kind).removeprefix("torch.")
        return name


def _plain(value: Any) -> Value:
    if isinstance(value, list | tuple):
        return tuple(int(item) for item in value)
    return value if isinstance(value, int | float | bool | str) else str(value)
