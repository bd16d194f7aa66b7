"""What went into an expression that failed: each value by the name it was written with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.frame_reader import UNKNOWN, WORKED_OUT, FrameReader, StorageOf
from shapetrace.capture.failure.module_operands import ModuleOperands
from shapetrace.capture.failure.taken_apart import assigned, indices, unpacked
from shapetrace.capture.failure.traceback import FramePlace, conditions
from shapetrace.capture.source.discover import is_machinery
from shapetrace.capture.source.registry import is_internal
from shapetrace.records.trace import Operand, Shape

_SHOWN = 16
_WRAPPERS = ("_wrapped_call_impl", "_call_impl", "__call__")
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}


class Operands:
    """Reads the operands of one failure.

    Attributes:
        operation: What the expression does: ``@``, ``cat``, a module's class; once read.
    """

    def __init__(
        self, place: FramePlace, inner: list[FramePlace], storage_of: StorageOf, shapes: list[Shape]
    ) -> None:
        """Take where it failed.

        Args:
            place: The frame to blame.
            inner: The frames below it, outermost first.
            storage_of: The number of a tensor's block.
            shapes: What the operator that raised was given; empty when torch did not get so
                far.
        """
        self.operation = ""
        self._reader = FrameReader(place, storage_of)
        self._place = place
        self._inner = list(takewhile(lambda step: not is_machinery(step.file), inner))
        self._shapes = shapes

    def read(self) -> list[Operand]:
        """The operands, in the order in which they are written."""
        node = self._place.node
        found = list(self._of(node)) if node is not None else []
        found = _filled(found, self._shapes)
        if not any(operand.shape is not None for operand in found) and self._place.statement:
            self.operation = self.operation or _word(self._place.statement)
            found = list(self._names(self._place)) or found
        return found[:_SHOWN]

    def _of(self, node: ast.AST) -> Iterator[Operand]:
        match node:
            case ast.BinOp(left=left, op=sign, right=right):
                self.operation = _SIGNS.get(type(sign), "")
                yield from self._reader.written(left, "0")
                yield from self._reader.written(right, "1")
            case ast.AugAssign(target=left, op=sign, value=right):
                self.operation = _SIGNS.get(type(sign), "") + "="
                yield from self._reader.written(left, "0")
                yield from self._reader.written(right, "1")
            case ast.Compare(left=left, comparators=others):
                self.operation = "compare"
                for number, part in enumerate([left, *others]):
                    yield from self._reader.written(part, str(number))
            case ast.Subscript(value=inner, slice=index):
                self.operation = "index"
                yield from self._reader.written(inner, "self")
                yield from indices(self._reader, index)
                if isinstance(node.ctx, ast.Store):
                    self.operation = "assign"
                    yield from assigned(self._reader, node)
            case ast.Tuple(ctx=ast.Store()) | ast.List(ctx=ast.Store()):
                self.operation = "unpack"
                yield from unpacked(self._reader)
            case ast.Attribute(value=inner):
                self.operation = "attribute"
                yield from self._reader.written(inner, "self")
            case ast.Call():
                yield from self._call(node)

    def _call(self, node: ast.Call) -> Iterator[Operand]:
        module = self._module(node.func)
        below = [p for p in self._inner if p.frame.f_code.co_name not in _WRAPPERS]
        deepest = _deepest(below)
        if module is not None and deepest is not None and is_internal(below[0].file):
            failed: nn.Module = deepest.frame.f_locals["self"]
            self.operation = type(failed).__name__
            yield from ModuleOperands(self._reader, self._inner).of(node, module, failed)
            return
        self.operation = _called(node.func)
        if isinstance(node.func, ast.Attribute) and module is None:
            owner = self._reader.worth(node.func.value)
            if isinstance(owner, torch.Tensor):
                yield self._reader.tensor(_text(node.func.value), "self", owner)
            elif isinstance(node.func.value, WORKED_OUT):
                yield Operand(_text(node.func.value), "self")
        given = _given(below)
        for number, argument in enumerate(node.args):
            yield from self._reader.written(argument, str(number), given.get(number))
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield from self._reader.written(keyword.value, keyword.arg)

    def _module(self, node: ast.expr) -> nn.Module | None:
        found = self._reader.worth(node)
        if found is UNKNOWN and self._inner:
            # ``for layer in layers: x = layer(x)`` and the like: the frame below knows it.
            below = self._inner[0].frame
            owner = below.f_locals.get("self")
            found = owner if below.f_code.co_name in _WRAPPERS else None
        return found if isinstance(found, nn.Module) else None

    def _names(self, place: FramePlace) -> Iterator[Operand]:
        """Every tensor that a statement names, and the condition above a ``raise``."""
        if place.statement is None:
            return
        roots: list[ast.AST] = [place.statement]
        if isinstance(place.statement, ast.Raise | ast.Assert):
            roots += conditions(place)
        seen: set[str] = set()
        for root in roots:
            for node in _own(root):
                value = (
                    self._reader.worth(node) if isinstance(node, ast.Name | ast.Attribute) else None
                )
                if isinstance(value, torch.Tensor | int) and _text(node) not in seen:
                    seen.add(_text(node))
                    yield from self._reader.written(node, "")


def _own(root: ast.AST) -> Iterator[ast.expr]:
    """Expressions of a statement, without those of statements inside it."""
    for child in ast.iter_child_nodes(root):
        if not isinstance(child, ast.stmt):
            if isinstance(child, ast.expr):
                yield child
            yield from _own(child)


def _deepest(below: list[FramePlace]) -> FramePlace | None:
    """The innermost running forward of one of torch's modules."""
    for place in reversed(below):
        owner = place.frame.f_locals.get("self")
        is_forward = place.frame.f_code.co_name == "forward"
        if is_forward and isinstance(owner, nn.Module) and is_internal(place.file):
            return place
    return None


def _given(below: list[FramePlace]) -> dict[int, Any]:
    """The arguments that the first frame below was given, by position."""
    if not below:
        return {}
    frame = below[0].frame
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    names = names[1:] if names[:1] == ("self",) else names
    return {number: frame.f_locals.get(name) for number, name in enumerate(names)}


def _called(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _word(statement: ast.stmt) -> str:
    return type(statement).__name__.lower()


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _filled(operands: list[Operand], shapes: list[Shape]) -> list[Operand]:
    """Operands whose values are gone (``self.a(x)``), with the shapes that the operator had."""
    open_ = [o for o in operands if o.shape is not None or not o.value]
    missing = any(operand.shape is None for operand in open_)
    fits = len(open_) == len(shapes) and all(
        operand.shape in (None, shape) for operand, shape in zip(open_, shapes, strict=True)
    )
    if not missing or not fits:
        return operands
    known = {id(operand): shape for operand, shape in zip(open_, shapes, strict=True)}
    return [replace(o, shape=known[id(o)]) if id(o) in known else o for o in operands]
