"""From a size of an operand back to the argument or the attribute that fixed it.

Each step is shown by trying: the statement that made a value is worked out again on
weightless tensors; where that gives the sizes that were recorded, and one part of it alone
moves the size when it is larger, the size comes from that part. Else the way ends.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FrameType
from typing import Any

import torch

from shapetrace.capture.failure.constructors import constructed_attribute, setting
from shapetrace.capture.failure.frozen_eval import (
    FrameNames,
    NotEvaluableError,
    evaluate_frozen,
    frame_names,
)
from shapetrace.capture.failure.history import Bound, history
from shapetrace.capture.failure.sources import SizeSource, sources
from shapetrace.capture.failure.traceback import FramePlace, function_at
from shapetrace.capture.recorder.events import Event
from shapetrace.capture.source.registry import is_internal
from shapetrace.records.trace import Origin, OriginKind

_STEPS = 8
_TOGETHER = 3
_WRAPPERS = ("_wrapped_call_impl", "_call_impl")


@dataclass(frozen=True, eq=False)
class Lineage:
    """Follows the sizes of one function's values.

    Attributes:
        found: The frames that the exception went through, outermost first.
        number: Which of them is the function's.
        events: What was recorded.
    """

    found: Sequence[FramePlace]
    number: int
    events: Sequence[Event]

    @property
    def _place(self) -> FramePlace:
        return self.found[self.number]

    @property
    def _frame(self) -> FrameType:
        return self._place.frame

    @cached_property
    def _bound(self) -> list[Bound]:
        return history(self.events, self._frame.f_code)

    @cached_property
    def _function(self) -> ast.FunctionDef | None:
        return function_at(self._place.file, self._frame.f_code)

    def of(self, node: ast.expr, axis: int | None) -> tuple[Origin, ...]:
        """Where a size of an expression of the failed statement comes from, nearest first.

        Args:
            node: The expression.
            axis: Which axis of its worth; None for a number.
        """
        return tuple(self._back(node, axis, len(self._bound), self._place.line, _STEPS))

    def _back(
        self, node: ast.expr, axis: int | None, at: int, line: int, steps: int
    ) -> list[Origin]:
        """The way back of a size of an expression that ran at a time and on a line."""
        if steps == 0:
            return []
        known = sources(node, self._names(at), axis)
        names = {ast.unparse(source.node) for source in known}
        if len(names) > 1:
            together = _listed(known)
            return [Origin(together, "parts")] if together else []
        if not known:
            return []
        source = known[0]
        if len(known) > 1:
            return self._several(source, [other.axis for other in known], at)
        match source.node:
            case ast.Name(id=name):
                return self._variable(name, source, at, line, steps)
            case ast.Attribute() | ast.Subscript():
                return self._attribute(source)
        return []

    def _several(self, source: SizeSource, axes: list[int | None], at: int) -> list[Origin]:
        """Several axes of one variable, where the way ends."""
        known = [b for b in self._bound[:at] if b.name == ast.unparse(source.node)]
        places = tuple(axis for axis in axes if axis is not None)
        if not known or len(places) != len(axes):
            return []
        kind: OriginKind = "argument" if known[-1].is_argument else "local"
        return [Origin(known[-1].name, kind, places, self._place.file, known[-1].line)]

    def _names(self, at: int) -> FrameNames:
        """What names stood for at a time, tensors weightless."""
        given = {
            bound.name: torch.empty(bound.shape, dtype=bound.dtype, device="meta")
            for bound in self._bound[:at]
            if -1 not in bound.shape
        }
        return replace(frame_names(self._frame), given=given)

    def _variable(
        self, name: str, source: SizeSource, at: int, line: int, steps: int
    ) -> list[Origin]:
        places = [number for number, bound in enumerate(self._bound[:at]) if bound.name == name]
        file = self._place.file
        if places and self._bound[places[-1]].is_argument:
            here = Origin(name, "argument", _axes(source), file, self._bound[places[-1]].line)
            return [here, *self._caller(name, source.axis, steps)]
        if places:
            bound = self._bound[places[-1]]
            here = Origin(name, "local", _axes(source), file, bound.line)
            value = self._assigned(name, bound.line)
            if value is None or not self._same(value, bound, places[-1]):
                return [here]
            return [here, *self._back(value, source.axis, places[-1], bound.line, steps - 1)]
        return self._number(name, source, at, line, steps)

    def _same(self, node: ast.expr, bound: Bound, at: int) -> bool:
        """Whether a statement, worked out again, makes what was recorded."""
        value = self._worth(node, at)
        return isinstance(value, torch.Tensor) and tuple(value.shape) == bound.shape

    def _worth(self, node: ast.expr, at: int) -> Any:
        try:
            return evaluate_frozen(node, self._names(at))
        except NotEvaluableError:
            return None

    def _number(
        self, name: str, source: SizeSource, at: int, line: int, steps: int
    ) -> list[Origin]:
        """A variable that is no tensor: bound by one statement, or an argument."""
        function = self._function
        if function is None:
            return []
        made = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and _binds(s, name)]
        file = self._place.file
        if not made and name in self._frame.f_code.co_varnames[: _arguments(self._frame)]:
            here = Origin(name, "argument", _axes(source), file, function.lineno)
            return [here, *self._caller(name, source.axis, steps)]
        if len(made) != 1 or made[0].lineno > line or not isinstance(made[0], ast.Assign):
            return []
        here = Origin(name, "local", _axes(source), file, made[0].lineno)
        then = sum(bound.line < made[0].lineno for bound in self._bound[:at])
        target, value = made[0].targets[0], made[0].value
        axis = source.axis
        if isinstance(target, ast.Tuple) and not any(
            isinstance(part, ast.Starred) for part in target.elts
        ):
            axis = next(i for i, part in enumerate(target.elts) if ast.unparse(part) == name)
        worth = self._frame.f_locals.get(name)
        if axis is None and worth != self._worth(value, then):
            return [here]
        return [here, *self._back(value, axis, then, made[0].lineno, steps - 1)]

    def _assigned(self, name: str, line: int) -> ast.expr | None:
        """What the statement on a line binds a name to."""
        for node in ast.walk(self._function) if self._function is not None else ():
            match node:
                case ast.Assign(targets=[ast.Name(id=bound)], value=value):
                    if bound == name and node.lineno <= line <= (node.end_lineno or line):
                        return value
                case ast.AnnAssign(target=ast.Name(id=bound), value=ast.expr() as value):
                    if bound == name and node.lineno <= line <= (node.end_lineno or line):
                        return value
        return None

    def _caller(self, name: str, axis: int | None, steps: int) -> list[Origin]:
        """The way on from an argument, where the call that gave it can be read."""
        for number in range(self.number - 1, -1, -1):
            outer = self.found[number]
            if is_internal(outer.file) and outer.frame.f_code.co_name in _WRAPPERS:
                continue
            if not isinstance(outer.node, ast.Call) or is_internal(outer.file):
                return []
            node = _argument(outer.node, name, self._frame)
            if node is None:
                return []
            given = next((bound for bound in self._bound if bound.name == name), None)
            return Lineage(self.found, number, self.events).passed(node, axis, given, steps - 1)
        return []

    def passed(
        self, node: ast.expr, axis: int | None, given: Bound | None, steps: int
    ) -> list[Origin]:
        """The way back of an expression that a call in this function is given.

        Args:
            node: The expression.
            axis: Which axis of it; None for a number.
            given: What the called function was given; None for what is no tensor.
            steps: How many steps may be taken.
        """
        now = len(self._bound)
        if given is not None and not self._same(node, given, now):
            return []
        return self._back(node, axis, now, self._place.line, steps)

    def setting(self, module: ast.expr, argument: str) -> tuple[Origin, ...]:
        """Where an argument of a module of torch's was given."""
        return tuple(self._attribute(SizeSource(module, setting=argument))) if argument else ()

    def _attribute(self, source: SizeSource) -> list[Origin]:
        """An attribute, and the constructor's argument that fixed it."""
        text = ast.unparse(source.node)
        inner = source.node
        while isinstance(inner, ast.Subscript):
            inner = inner.value
        if not isinstance(inner, ast.Attribute):
            return []
        try:
            owner = evaluate_frozen(inner.value, frame_names(self._frame))
            value = evaluate_frozen(source.node, frame_names(self._frame))
        except NotEvaluableError:
            return []
        if source.setting:
            return setting(owner, inner.attr, text, source.setting)
        if type(owner).__module__.startswith("torch.nn.") and inner is source.node:
            return self._attribute(SizeSource(inner.value, setting=inner.attr))
        return constructed_attribute(owner, inner.attr, text, value, source.axis)


def _listed(known: list[SizeSource]) -> str:
    """Several parts that a size follows, in words; empty where they are many."""
    words = []
    for source in known:
        text = f"`{ast.unparse(source.node)}`"
        if source.setting:
            text = f"{source.setting} of {text}"
        words.append(text if source.axis is None else f"axis {source.axis} of {text}")
    return " and ".join(words) if len(words) <= _TOGETHER else ""


def _axes(source: SizeSource) -> tuple[int, ...]:
    return () if source.axis is None else (source.axis,)


def _binds(statement: ast.stmt, name: str) -> bool:
    """Whether a statement itself, not one inside it, binds a name."""
    parts = [c for c in ast.iter_child_nodes(statement) if not isinstance(c, ast.stmt)]
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for part in parts
        for node in ast.walk(part)
    )


def _arguments(frame: FrameType) -> int:
    return frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount


def _argument(call: ast.Call, name: str, frame: FrameType) -> ast.expr | None:
    """What a call gives for a parameter of the function that a frame runs."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = list(frame.f_code.co_varnames[: frame.f_code.co_argcount])
    if names[:1] == ["self"]:
        names = names[1:]
    if name not in names or any(isinstance(part, ast.Starred) for part in call.args):
        return None
    place = names.index(name)
    return call.args[place] if place < len(call.args) else None
