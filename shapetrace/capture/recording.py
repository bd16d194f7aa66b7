"""`record`: watch a model run, and have a `Trace` of it afterwards."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, TracebackType
from typing import Any, Self

import torch
from torch import nn

from shapetrace.capture.declared.enforcement import annotated_functions
from shapetrace.capture.declared.namespaces import by_file
from shapetrace.capture.declared.verdicts import declare
from shapetrace.capture.failure.failure import blame
from shapetrace.capture.recorder.assemble import Tables, assemble
from shapetrace.capture.recorder.calls import module_names
from shapetrace.capture.recorder.equal_calls import twins
from shapetrace.capture.recorder.events import Event, repeated
from shapetrace.capture.recorder.hooks import activate
from shapetrace.capture.recorder.parameter_records import parameter_records, waits
from shapetrace.capture.recorder.recorder import Recorder
from shapetrace.capture.recorder.repeats import write_out
from shapetrace.capture.recorder.scripted import Outside, scripted_roots
from shapetrace.capture.recorder.shorten import shortened
from shapetrace.capture.recorder.swap import Swap, swap
from shapetrace.capture.source.discover import Wanted, graphs_of, joined, reachable
from shapetrace.capture.source.registry import REGISTRY
from shapetrace.capture.target.given import check_module
from shapetrace.capture.values import members
from shapetrace.capture.values.quietly import quietly
from shapetrace.records.signature import Signature
from shapetrace.records.trace import (
    Failure,
    ParameterRecord,
    Trace,
)


class Recording:
    """A context manager; `trace` holds the result once the block has ended.

    The model is left as it was: its code, its hooks, its mode, its random state.
    """

    def __init__(
        self,
        model: nn.Module | None,
        *,
        wanted: Wanted | None = None,
        operators: bool = True,
        check: bool = True,
        repeats: bool = True,
        target: str = "",
        config: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._model = model
        self._wanted = reachable(model) if wanted is None else joined(wanted, graphs_of(model))
        self._check = check
        self._target = target or (type(model).__name__ if model is not None else "run")
        self._config = dict(config or {})
        self._sizes = dict(sizes or {})
        self._names, self._numbers = module_names(model)
        self._members = _members(model, self._numbers)
        alike = quietly(twins, model, self._numbers) if model is not None and repeats else ()
        self._recorder = Recorder(
            self._numbers, self._members, frozenset(alike), operators=operators
        )
        self._swap = Swap()
        self._opaque = tuple(_opaque(model))
        self._outside = Outside([module for _, module in scripted_roots(model)])
        self._called: set[int] = set()
        self._functions: dict[str, list[FunctionType]] = {}
        self._parameters = quietly(parameter_records, model, self._recorder.storages)
        self._waits = waits(model)
        self._before = len(self._recorder.storages.blocks)
        self._made: tuple[ParameterRecord, ...] = ()
        self._failure: Failure | None = None
        self._interrupted = False
        self._started = self._seconds = 0.0
        self._trace: Trace | None = None

    def __enter__(self) -> Self:
        """Start recording.

        Raises:
            ShapetraceError: Another recording is running in this process.
        """
        self._swap = swap(self._wanted)
        try:
            self._functions = by_file(function for function, _ in self._swap.functions)
            self._recorder.thread = threading.get_ident()
            activate(self._recorder)
            self._outside.begin()
            if self._recorder.mode is not None:
                self._recorder.mode.__enter__()
        except BaseException:
            activate(None)
            self._outside.end()
            self._swap.undo()
            raise
        self._started = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop recording and put everything back, whatever happened."""
        self._seconds = time.perf_counter() - self._started
        self._interrupted = isinstance(error, KeyboardInterrupt)
        try:
            if self._recorder.mode is not None:
                self._recorder.mode.__exit__(None, None, None)
            activate(None)  # explaining runs code of the model's, such as extra_repr
            if error is not None:
                self._failure = quietly(blame, error, self._recorder.events, self._block_of)
            if self._waits:
                self._made = quietly(parameter_records, self._model, self._recorder.storages)
            self._recorder.close()
        finally:
            activate(None)
            self._outside.end()
            self._swap.undo()

    def _block_of(self, tensor: torch.Tensor) -> int | None:
        """The block of a tensor that the recording has met."""
        try:
            known = self._recorder.live.get(tensor.untyped_storage()._cdata)  # noqa: SLF001
        except (NotImplementedError, RuntimeError):
            return None
        return None if known is None else known[0]

    @property
    def trace(self) -> Trace:
        """What was recorded; available once the block has ended."""
        if self._trace is None:
            self._trace = quietly(self._finish)
            self._members = []
            self._recorder = Recorder({})
        return self._trace

    def signatures(self) -> tuple[Signature, ...]:
        """The functions that ran with jaxtyping annotations, and whether they check them."""
        self.trace  # noqa: B018 - to read a trace is to finish it
        return annotated_functions(self._called, self._functions)

    def _submodules(self) -> dict[int, list[int]]:
        """By number of a repeated module: the numbers of the modules in it."""
        roots: set[int] = set()
        for template, module, _, _ in filter(None, map(repeated, self._recorder.events)):
            roots |= {template.module, module}
        return {
            root: [self._numbers[id(module)] for module in members.modules(self._members[root])]
            for root in roots
        }

    def _not_seen(self) -> Iterator[str]:
        """The functions that the run entered and that have no scope of their own."""
        names = dict.fromkeys(REGISTRY.passed[number] for number in self._recorder.passed)
        return (f"{name} is not seen inside" for name in names)

    def _all_parameters(self, tables: Tables) -> tuple[ParameterRecord, ...]:
        """Those of before the run, and those that its first call made."""
        before = {record.path: record for record in self._parameters}
        made = (
            replace(record, storage=tables.numbers.get(record.storage, -1))
            for record in self._made
            if record.path not in before
        )
        return (*self._parameters, *made)

    def _finish(self) -> Trace:
        recorder = self._recorder
        blocks = recorder.storages.blocks
        events: Sequence[Event] = write_out(recorder.events, blocks, self._submodules())
        cut = ""
        if self._interrupted:
            events, cut = shortened(events)
        tables = assemble(
            events,
            blocks,
            self._names,
            self._target,
            before=self._before,
            beside=recorder.mode.memory.marked if recorder.mode is not None else (),
            failed=self._failure is not None,
        )
        self._called = {number for number in tables.functions if number >= 0}
        declare(tables, self._functions, judge=self._check)
        failure = self._failure
        if failure is not None:
            failure = replace(
                failure,
                scope=_innermost_failed(tables),
                at=len(events) if cut else failure.at,
                operands=tuple(
                    replace(operand, storage=tables.numbers.get(operand.storage))
                    if operand.storage is not None
                    else operand
                    for operand in failure.operands
                ),
            )
        return Trace(
            target=self._target,
            config=tuple(self._config.items()),
            sizes=tuple(self._sizes.items()),
            sites=tuple(tables.sites),
            scopes=tuple(tables.scopes),
            tensors=tuple(tables.tensors),
            ops=tuple(tables.ops),
            storages=tuple(tables.storages),
            parameters=self._with_gradients(tables),
            notes=(*filter(None, (cut,)), *self._swap.notes, *self._not_seen(), *self._opaque),
            failure=failure,
            wall_time=self._seconds,
            environment=(("torch", torch.__version__), ("python", platform.python_version())),
        )

    def _with_gradients(self, tables: Tables) -> tuple[ParameterRecord, ...]:
        """The parameters, each with the storage of its gradient."""
        parameters = self._all_parameters(tables)
        mode = self._recorder.mode
        if mode is None or self._model is None or not mode.memory.gradients:
            return parameters
        blocks = {
            name: mode.memory.gradients.get(id(parameter))
            for name, parameter in members.named_parameters(self._model)
        }
        return tuple(
            record
            if record.buffer or (block := blocks.get(record.path)) is None
            else replace(record, gradient=tables.numbers[block])
            for record in parameters
        )


def record(
    model: nn.Module | None,
    *,
    wanted: Wanted | None = None,
    operators: bool = True,
    check: bool = True,
    repeats: bool = True,
    target: str = "",
    config: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Recording:
    """Watch whatever runs inside a ``with`` block.

    Args:
        model: The module whose calls are to be named; None to watch plain functions.
        wanted: By source file, the first lines of the functions to look into, None for all
            of a file's; what the model's forwards reach by name when None.
        operators: Whether operators, and with them FLOPs and memory, are recorded.
        check: Whether declared annotations are checked.
        repeats: Whether equal calls of equal layers may be told by the first of them.
        target: What the run is called; the model's class without it.
        config: Sizes and settings of the model, to be kept with the trace.
        sizes: Of the inputs' named axes.

    Example:
        >>> model = nn.Linear(4, 3)
        >>> with record(model) as recording:
        ...     y = model(torch.ones(2, 4))
        >>> [tensor.shape for tensor in recording.trace.tensors]
        [(2, 4), (2, 3)]
    """
    check_module(model, optional=True)
    return Recording(
        model,
        wanted=wanted,
        operators=operators,
        check=check,
        repeats=repeats,
        target=target,
        config=config,
        sizes=sizes,
    )


def _opaque(model: nn.Module | None) -> Iterator[str]:
    """What of a model runs no Python that could be looked into; its operators are seen."""
    for path, module in scripted_roots(model):
        kind = getattr(module, "original_name", "") or type(module).__name__
        yield f"{path or 'the model'} ({kind}) is scripted: seen from outside only"


def _members(model: nn.Module | None, numbers: Mapping[int, int]) -> list[nn.Module]:
    found = {numbers[id(m)]: m for m in members.modules(model)} if model is not None else {}
    return [found[number] for number in range(len(found))]


def _innermost_failed(tables: Tables) -> int:
    failed = [number for number, scope in enumerate(tables.scopes) if scope.failed]
    return failed[-1] if failed else 0
