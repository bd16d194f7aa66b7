"""Events to a `Trace`: pure bookkeeping, after the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from torch import nn

from shapetrace.capture import events as kinds
from shapetrace.capture.braces import Held
from shapetrace.capture.events import Event, Seen
from shapetrace.capture.sites import REGISTRY, Binding, FunctionSite
from shapetrace.capture.storages import Block
from shapetrace.trace.records import (
    OpRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
)

UNSEEN = "shapetrace.unseen"
"""Stands in a trace for operators that ran while nobody looked."""
Value = int | float | bool | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """A module of the traced model: all its dotted names, and its class."""

    names: tuple[str, ...]
    type_name: str


def module_names(model: nn.Module | None) -> tuple[list[ModuleNames], dict[int, int]]:
    """Every module's names (a shared one has several), and its number by identity."""
    names: dict[int, list[str]] = {}
    types: dict[int, str] = {}
    for name, module in model.named_modules(remove_duplicate=False) if model is not None else ():
        names.setdefault(id(module), []).append(name)
        types[id(module)] = type(module).__qualname__
    listed = [ModuleNames(tuple(paths), types[key]) for key, paths in names.items()]
    return listed, {key: number for number, key in enumerate(names)}


@dataclass(slots=True)
class _Frame:
    """A call that is running."""

    scope: int
    function: int
    module: int | str | None
    path: str
    last: int


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
    failed: bool = False,
) -> Tables:
    """Read the events of a run.

    Args:
        events: What a `Recorder` appended.
        blocks: The storages that it met.
        modules: The model's modules, by the index that events carry.
        target: What the run is called, for the root scope.
        before: How many of the blocks were met before the run; they keep their numbers.
        failed: Whether the run ended by raising.

    Returns:
        The trace's tables; scopes in which nothing happened are left out.
    """
    reader = _Reader(modules, blocks, target, len(events))
    reader.numbers.update((number, number) for number in range(before))
    for clock, event in enumerate(events):
        reader.read(clock, event)
    reader.finish(_quiet_tail(events) if failed else len(events))
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
    return _without_empty_scopes(reader.tables)


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
        self._modules = modules
        self._blocks = blocks
        self._sites: dict[int, int] = {}
        self._forward: dict[int, int] = {}
        self._frames = [_Frame(0, -1, None, "", 0)]
        self._dtypes: dict[torch.dtype, str] = {}
        self.tables.scopes.append(Scope(None, "", "function", target, "", 0, 0, length))
        self.tables.functions.append(-1)

    def read(self, clock: int, event: Event) -> None:  # noqa: C901 - one case per kind
        match event[0]:
            case kinds.SEE:
                self._tensor(clock, event[1], event[2], event[3])
                self._frames[-1].last = clock
            case kinds.SEE_ALL:
                for binding, element, seen in event[1]:
                    self._tensor(clock, binding, element, seen)
                self._frames[-1].last = clock
            case kinds.MARK:
                self._frames[-1].last = clock
            case kinds.OP:
                self._op(clock, event)
            case kinds.ENTER:
                self._enter(clock, event[1], event[2])
            case kinds.EXIT:
                self._exit(clock, event[1])
            case kinds.FREE:
                self.died.setdefault(event[1], clock)
            case kinds.HOLD:
                self.tables.held[self._frames[-1].scope] = event[1]
            case kinds.LOST:
                self._lost(clock)

    def finish(self, failed_after: int) -> None:
        """Close what is still open, and mark the calls that an exception ended."""
        scopes = self.tables.scopes
        for number, scope in enumerate(scopes):
            if scope.end >= failed_after and failed_after < scopes[0].end:
                scopes[number] = replace(scope, failed=True)

    def _enter(self, clock: int, function: int, module: int | str | None) -> None:
        site = REGISTRY.functions[function]
        parent = self._frames[-1]
        is_module = site.name == "forward" and module is not None and module != parent.module
        names = self._modules[module] if isinstance(module, int) else None
        if is_module:
            path = _best_name(names.names, parent.path) if names else f"{parent.path}.{module}"
            type_name = names.type_name if names else str(module)
        else:
            path = f"{parent.path}.{site.name}()"
            type_name = site.qualname.replace(".<locals>", "")
        path = path.lstrip(".")
        number = len(self.tables.scopes)
        self.tables.scopes.append(
            Scope(
                parent.scope,
                path,
                "module" if is_module else "function",
                type_name,
                site.file,
                site.line,
                clock,
                self.tables.scopes[0].end,
            )
        )
        self.tables.functions.append(function)
        owner = module if module is not None else parent.module
        self._frames.append(_Frame(number, function, owner, path, clock))

    def _exit(self, clock: int, function: int) -> None:
        if all(frame.function != function for frame in self._frames[1:]):
            return
        while True:
            frame = self._frames.pop()
            self.tables.scopes[frame.scope] = replace(self.tables.scopes[frame.scope], end=clock)
            if frame.function == function:
                return

    def _tensor(self, clock: int, binding: int, element: str, seen: Seen) -> None:
        frame = self._frames[-1]
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
                None if block is None else self._block(block),
                element,
                requires_grad,
                layout,
            )
        )

    def _lost(self, clock: int) -> None:
        """Operators may have run unseen; they are listed, never silently zero."""
        scope = self._frames[-1].scope
        self.tables.ops.append(OpRecord(UNSEEN, scope, clock, (), (), ""))

    def _op(self, clock: int, event: Event) -> None:
        _, plan, inputs, outputs, attributes, dtype, phase, sequence, new = event
        for block in new:
            self._block(block)
            self.born[block] = clock
        scope = self._frames[-1].scope
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
                sum(self._blocks[block][0] for block in new),
            )
        )

    def _site(self, binding: int) -> int:
        number = self._sites.get(binding)
        if number is None:
            number = self._sites[binding] = len(self.tables.sites)
            self.tables.sites.append(REGISTRY.bindings[binding].site)
            self.tables.bindings.append(REGISTRY.bindings[binding])
        return number

    def _block(self, block: int) -> int:
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


def _best_name(names: Sequence[str], parent: str) -> str:
    """Of a shared module's names, the one under the module that calls it."""
    prefix = parent.partition("(")[0].rpartition(".")[0] if "(" in parent else parent
    for name in names:
        if prefix and name.startswith(prefix + "."):
            return name
    return names[0]


def function_of(number: int) -> FunctionSite | None:
    """The function that a scope ran; None for the root."""
    return REGISTRY.functions[number] if number >= 0 else None


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
