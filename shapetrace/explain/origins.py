"""Where a value of a failed statement comes from, and what its axes are called."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shapetrace.records.trace import Failure, Trace

if TYPE_CHECKING:
    from shapetrace.records.trace import Operand, Origin, ParameterRecord, Scope, TensorRecord

_LONGEST = 120
"""Characters of a path that are shown."""
_IDENTIFIER = re.compile(r"(?:self\.)?[A-Za-z_]\w*")


@dataclass(frozen=True, eq=False)
class Origins:
    """Looks the operands of a failure up in its trace.

    Attributes:
        trace: The trace.
        failure: Its failure.
    """

    trace: Trace
    failure: Failure

    @cached_property
    def scope(self) -> int:
        """The innermost call that was running the statement's own function."""
        scopes = self.trace.scopes
        own = [
            number
            for number, scope in enumerate(scopes)
            if scope.failed and scope.file == self.failure.file and scope.line <= self.failure.line
        ]
        return own[-1] if own else self.failure.scope

    def circle(self) -> list[tuple[str, int, str]]:
        """The calls that lead to each other over and over, of a run that never came back."""
        if self.failure.type_name != "RecursionError":
            return []
        last = (self.failure.file, self.failure.line, self.failure.statement)
        calls = [*self.failure.callers, last]
        seen = calls[:-1][::-1]
        length = seen.index(last) + 1 if last in seen else 0
        turn = calls[-length:] if length else []
        return turn if turn and turn == calls[-2 * length : -length] else []

    def where(self) -> str:
        """The path of that call, and what it is a call of."""
        if not self.trace.scopes:
            return ""
        scope = self.trace.scopes[self.scope]
        return f"{_short(scope.path)} ({scope.type_name})" if scope.path else scope.type_name

    def parameter(self, operand: Operand) -> ParameterRecord | None:
        """The parameter that an operand is."""
        if operand.storage is None:
            return None
        for parameter in self.trace.parameters:
            if parameter.storage == operand.storage and parameter.shape == operand.shape:
                return parameter
        return None

    def record(self, operand: Operand) -> TensorRecord | None:
        """The record in which an operand's value was last seen."""
        known = self._records(operand)
        return known[-1] if known else None

    def _records(self, operand: Operand) -> list[TensorRecord]:
        if operand.storage is None or operand.shape is None:
            return []
        return [
            record
            for record in self.trace.tensors
            if record.storage == operand.storage and record.shape == operand.shape
        ]

    def names(self, operand: Operand) -> tuple[str, ...]:
        """What each axis of an operand is called; empty where it has no name."""
        shape = operand.shape or ()
        record, parameter = self._telling(operand), self.parameter(operand)
        dims = parameter.dims if parameter is not None else record.dims if record else None
        if dims is not None and len(dims) == len(shape):
            return tuple("" if dim.name.isdecimal() else dim.marked for dim in dims)
        if record is not None and record.declared and record.holds is not False:
            shapes = record.declared.shapes
            words = shapes[0].dims.split() if len(shapes) == 1 else []
            if len(words) == len(shape) and all(word.isidentifier() for word in words):
                return tuple(words)
        return ("",) * len(shape)

    def _telling(self, operand: Operand) -> TensorRecord | None:
        """The latest record of an operand that says what its axes are, else the latest."""
        known = self._records(operand)
        told = [r for r in known if r.dims is not None or (r.declared and r.holds is not False)]
        return told[-1] if told else known[-1] if known else None

    def traced(self, operand: Operand, axis: int | None) -> str:
        """Where the size of an axis comes from, back to what fixed it; of a number, its own."""
        chain = operand.origins[axis or 0] if (axis or 0) < len(operand.origins) else ()
        if operand.line or axis is None or not self._is_named(operand):
            steps = [_step(step, operand.text) for step in _ends(chain)]
            return ", ".join(step for step in steps if step) or self.made(operand, axis)
        first = self.made(operand, axis)
        own = [step for step in chain[:1] if step.text == operand.text and step.line]
        if own and own[0].kind == "attribute":
            first = f"{first} ({place(own[0].file, own[0].line)})"
        last = chain[-1:] if len(chain) > len(own) else ()
        further = (_step(step) for step in last if place(step.file, step.line) not in first)
        return ", ".join([first, *further])

    def _is_named(self, operand: Operand) -> bool:
        """Whether a variable or a parameter holds an operand."""
        return bool(self._own(self._records(operand)) or self.parameter(operand))

    def made(self, operand: Operand, axis: int | None = None) -> str:
        """Where an operand, or the size of one of its axes, was last made."""
        if operand.line:
            holder = operand.text.removesuffix(f".{operand.role}")
            return f"from `{holder}` ({place(operand.file, operand.line)})"
        parameter = self.parameter(operand)
        if parameter is not None:
            return f"from {'buffer' if parameter.buffer else 'parameter'} `{parameter.path}`"
        first = next(iter(self._own(self._records(operand))), None)
        if first is None:
            return self._inside(operand, axis)
        return self._described(first)

    def _own(self, records: list[TensorRecord]) -> list[TensorRecord]:
        return [record for record in records if not self.trace.sites[record.site].internal]

    def _inside(self, operand: Operand, axis: int | None) -> str:
        """The origin of a value inside the expression that has the same size."""
        size = operand.shape[axis] if operand.shape is not None and axis is not None else None
        for name in _IDENTIFIER.findall(operand.text):
            record = self._variable(name)
            if record is not None and size is not None and size in record.shape[-1:]:
                earliest = [
                    other
                    for other in self._own(list(self.trace.tensors))
                    if other.storage == record.storage and other.shape == record.shape
                ]
                return self._described(earliest[0] if earliest else record)
        returned = self._records(operand)
        if returned and self.trace.sites[returned[0].site].kind == "return":
            scope = self.trace.scopes[returned[0].scope]
            return f"what `{scope.path}` ({scope.type_name}) returned"
        return f"made in this statement by `{operand.text}`"

    def _variable(self, name: str) -> TensorRecord | None:
        """The latest value of a variable of the statement's function."""
        found = None
        for record in self.trace.tensors:
            if record.scope == self.scope and self.trace.sites[record.site].name == name:
                found = record
        return found

    def _described(self, record: TensorRecord) -> str:
        site, scope = self.trace.sites[record.site], self.trace.scopes[record.scope]
        what = {"argument": "argument ", "return": "the return value"}.get(site.kind, "")
        name = "" if site.kind == "return" else f"`{site.name}{record.element}`"
        return f"from {what}{name} {_since(scope)} ({place(site.file, site.line)})"


def _short(path: str) -> str:
    """A path, of which a recursion's ends are enough."""
    if len(path) <= _LONGEST:
        return path
    parts = path.split(".")
    return f"{parts[0]}. ... .{parts[-1]}"


def _since(scope: Scope) -> str:
    return f"since {_short(scope.path)}" if scope.path else f"of {scope.type_name}"


def place(file: str, line: int) -> str:
    """A place in the source, as short as it can be clicked on."""
    try:
        short = os.path.relpath(file)
    except ValueError:  # another drive
        short = file
    return f"{file if short.startswith('..') else short}:{line}"


def _ends(chain: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """The nearest and the farthest step."""
    return chain[:1] + chain[1:][-1:]


def _step(origin: Origin, own: str = "") -> str:
    """One step back in words: ``from axis 1 of argument `memory` (model.py:13)``."""
    where = f" ({place(origin.file, origin.line)})" if origin.line else ""
    if origin.kind == "parts":
        return f"from {origin.text}"
    if origin.kind == "setting":
        written = f", `{origin.source}`" if origin.source else ""
        return f"from {origin.text}{written}{where}"
    if origin.text == own and not origin.axes:
        return f"from line {origin.line}" if origin.line else ""
    what = {"argument": "argument ", "constructor": "the constructor's argument "}
    numbers = ", ".join(map(str, origin.axes))
    axes = f"{'axis' if len(origin.axes) == 1 else 'axes'} {numbers} of " if numbers else ""
    axes = "" if origin.text == own else axes
    return f"from {axes}{what.get(origin.kind, '')}`{origin.text}`{where}"
