"""Events to a `Trace`: pure bookkeeping, after the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.calls import Calls, ModuleNames
from shapetrace.capture.recorder.events import Event, Seen
from shapetrace.capture.recorder.storages import Block
from shapetrace.capture.source.braces import Held
from shapetrace.capture.source.registry import REGISTRY, Binding
from shapetrace.records.trace import (
    OpRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
)

UNSEEN = "shapetrace.unseen"
"""Stands in a trace for operators that ran while nobody looked."""
Value = int | float | bool | str | tuple[int, ...]


@dataclass(slots=True)
class Tables:
    """The tables of a trace, while they are filled."""

    sites: list[Site] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    tensors: list[TensorRecord] = field(default_factory=list)
    ops: list[OpRecord] = field(default_factory=list)
    storages: list[StorageRecord] = field(default_factory=list)
    held: dict[int, Held] = field(default_factory=dict)
    """By call, what the parts in braces of its annotations are worth."""
    numbers: dict[int, int] = field(default_factory=dict)
    """Numbers of storages by those of the blocks that were met while recording."""


def assemble(
    events: Sequence[Event],
    blocks: Sequence[Block],
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
    reader = _Reader(modules, blocks, target, len(events))
    reader.numbers.update((number, number) for number in range(before))
    for clock, event in enumerate(events):
        reader.read(clock, event)
    for block in sorted(beside):
        reader.number_of(block)
    reader.calls.finish(_quiet_tail(events) if failed else len(events))
    reader.tables.storages = [
        StorageRecord(
            blocks[old][0],
            blocks[old][1],
            str(blocks[old][2]),
            reader.born.get(old, 0),
            reader.died.get(old),
        )
        for old in reader.numbers
    ]
    reader.tables.numbers = reader.numbers
    return reader.tables if whole else _without_empty_scopes(reader.tables)


def _quiet_tail(events: Sequence[Event]) -> int:
    """Clock after which only calls ended: there the exception was on its way out."""
    clock = len(events)
    while clock and events[clock - 1][0] in (kinds.EXIT, kinds.FREE):
        clock -= 1
    return clock


class _Reader:
    def __init__(
        self, modules: Sequence[ModuleNames], blocks: Sequence[Block], target: str, length: int
    ) -> None:
        self.tables = Tables()
        self.numbers: dict[int, int] = {}
        self.born: dict[int, int] = {}
        self.died: dict[int, int] = {}
        self._blocks = blocks
        self._sites: dict[int, int] = {}
        self._forward: dict[int, int] = {}
        self._dtypes: dict[torch.dtype, str] = {}
        self.calls = Calls(modules, target, length, self.tables.scopes, self.tables.functions)

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
                self.died.setdefault(block, clock)
            case kinds.HOLD:
                _, worths = event
                self.tables.held[self.calls.now.scope] = worths
            case kinds.LOST:
                self._lost(clock)

    def _tensor(self, clock: int, binding: int, element: str, seen: Seen) -> None:
        frame = self.calls.now
        shape, dtype, block, requires_grad, layout, device = seen
        strided = not layout and min(shape, default=0) >= 0
        self.tables.tensors.append(
            TensorRecord(
                self._site(binding),
                frame.scope,
                frame.last,
                clock,
                tuple(shape),
                self._dtype(dtype),
                str(device if block is None else self._blocks[block][2]),
                prod(shape) * dtype.itemsize if strided else 0,
                None if block is None else self.number_of(block),
                element,
                requires_grad,
                layout,
            )
        )

    def _lost(self, clock: int) -> None:
        """Operators may have run unseen; they are listed, never silently zero."""
        scope = self.calls.now.scope
        self.tables.ops.append(OpRecord(UNSEEN, scope, clock, (), (), ""))

    def _op(self, clock: int, event: Event) -> None:
        _, plan, inputs, outputs, attributes, dtype, phase, sequence, new = event
        for block in new:
            self.number_of(block)
        made = () if plan.result == "input" else new  # else it was there, and is met only now
        self.born.update(dict.fromkeys(made, clock))
        scope = self.calls.now.scope
        if phase == "forward" and sequence >= 0:
            self._forward.setdefault(sequence, scope)
        elif phase == "backward":
            # A node created for a forward operator took the number before the one that the
            # operator saw; the gradient's operators belong where the operator ran.
            scope = self._forward.get(sequence + 1, scope)
        self.tables.ops.append(
            OpRecord(
                plan.name,
                scope,
                clock,
                tuple(None if shape is None else tuple(shape) for shape in inputs),
                tuple(tuple(shape) for shape in outputs),
                self._dtype(dtype) if dtype is not None else "",
                tuple((name, _plain(value)) for name, value in attributes if value is not None),
                phase,
                sum(self._blocks[block][0] for block in made),
            )
        )

    def _site(self, binding: int) -> int:
        number = self._sites.get(binding)
        if number is None:
            number = self._sites[binding] = len(self.tables.sites)
            self.tables.sites.append(REGISTRY.bindings[binding].site)
            self.tables.bindings.append(REGISTRY.bindings[binding])
        return number

    def number_of(self, block: int) -> int:
        """Blocks are numbered as they appear, however they were met while recording."""
        return self.numbers.setdefault(block, len(self.numbers))

    def _dtype(self, dtype: torch.dtype) -> str:
        if dtype not in self._dtypes:
            self._dtypes[dtype] = str(dtype).removeprefix("torch.")
        return self._dtypes[dtype]


def _plain(value: Any) -> Value:
    if isinstance(value, list | tuple):
        return tuple(int(item) for item in value)
    return value if isinstance(value, int | float | bool | str) else str(value)


def _without_empty_scopes(tables: Tables) -> Tables:
    """Leave out calls in whose whole subtree no tensor was bound and no operator ran."""
    used = {record.scope for record in tables.tensors} | {op.scope for op in tables.ops} | {0}
    for number in range(len(tables.scopes) - 1, 0, -1):
        parent = tables.scopes[number].parent
        if number in used and parent is not None:
            used.add(parent)
    if len(used) == len(tables.scopes):
        return tables
    new = {old: number for number, old in enumerate(sorted(used))}
    tables.functions = [tables.functions[old] for old in sorted(used)]
    scopes = [tables.scopes[old] for old in sorted(used)]
    tables.scopes = [
        scope if scope.parent is None else replace(scope, parent=new[scope.parent])
        for scope in scopes
    ]
    tables.held = {new[scope]: held for scope, held in tables.held.items() if scope in new}
    tables.tensors = [replace(record, scope=new[record.scope]) for record in tables.tensors]
    tables.ops = [replace(op, scope=new[op.scope]) for op in tables.ops]
    return tables
