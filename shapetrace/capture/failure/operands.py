"""What went into an expression that failed: each value by the name it was written with."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.frozen_eval import Unknown, evaluate, names_in
from shapetrace.capture.failure.traceback import Place, assignment, conditions
from shapetrace.capture.source.registry import is_internal
from shapetrace.capture.values import members
from shapetrace.capture.values.tensors_in import elements
from shapetrace.records.trace import Operand, Shape

StorageOf = Callable[[torch.Tensor], int | None]
_SHOWN = 16
_UNKNOWN = object()
_WORKED_OUT = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.UnaryOp)
_CAPTURE = "/shapetrace/capture/"
_WRAPPERS = ("_wrapped_call_impl", "_call_impl", "__call__")
_PARAMETERS = (
    *("weight", "bias"),
    *("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"),  # attention
    *("weight_ih_l0", "weight_hh_l0", "weight_ih", "weight_hh"),  # recurrent layers and cells
)
"""Parameters of torch's modules that a clash can be with."""
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
        self, place: Place, inner: list[Place], storage_of: StorageOf, shapes: list[Shape]
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
        self._place = place
        self._inner = list(takewhile(lambda step: _CAPTURE not in step.file, inner))
        self._storage_of = storage_of
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
                yield from self._written(left, "0")
                yield from self._written(right, "1")
            case ast.AugAssign(target=left, op=sign, value=right):
                self.operation = _SIGNS.get(type(sign), "") + "="
                yield from self._written(left, "0")
                yield from self._written(right, "1")
            case ast.Compare(left=left, comparators=others):
                self.operation = "compare"
                for number, part in enumerate([left, *others]):
                    yield from self._written(part, str(number))
            case ast.Subscript(value=inner, slice=index):
                self.operation = "index"
                yield from self._written(inner, "self")
                yield from self._indices(index)
                if isinstance(node.ctx, ast.Store):
                    self.operation = "assign"
                    yield from self._assigned(node)
            case ast.Tuple(ctx=ast.Store()) | ast.List(ctx=ast.Store()):
                self.operation = "unpack"
                yield from self._unpacked()
            case ast.Attribute(value=inner):
                self.operation = "attribute"
                yield from self._written(inner, "self")
            case ast.Call():
                yield from self._call(node)

    def _indices(self, index: ast.expr) -> Iterator[Operand]:
        """What indexes: of slices, those with a bound."""
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Slice):
                value = self._try(part)
                bounds = (part.lower, part.upper, part.step)
                if isinstance(value, slice) and not all(
                    bound is None or isinstance(bound, ast.Constant) for bound in bounds
                ):
                    shown = ("" if end is None else str(end) for end in (value.start, value.stop))
                    yield Operand(_text(part), "slice", value=":".join(shown))
            else:
                yield from self._written(part, "0")

    def _assigned(self, part: ast.Subscript) -> Iterator[Operand]:
        """The part of a tensor that is assigned to, and what is assigned."""
        value = self._try(part)
        if isinstance(value, torch.Tensor):
            yield replace(self._tensor(_text(part), "part", value), device="")
        statement = self._place.statement
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield from self._written(statement.value, "value")

    def _unpacked(self) -> Iterator[Operand]:
        """What is taken apart, how many values it has, and what it was split from."""
        statement = self._place.statement
        if not isinstance(statement, ast.Assign):
            return
        node = statement.value
        value = self._try(node)
        if isinstance(value, torch.Tensor):
            yield replace(self._tensor(_text(node), "value", value), device="")
        elif isinstance(value, tuple | list):
            yield Operand(_text(node), "value", value=f"{len(value)} values")
            yield _hidden("count", len(value))
            yield from self._split(node)

    def _split(self, node: ast.expr) -> Iterator[Operand]:
        """The tensor of a split or chunk, its axis and the size of the pieces."""
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            yield from self._written(node.value, "owner")
        if not isinstance(node, ast.Call):
            return
        name, args = _called(node.func), list(node.args)
        if name not in {"split", "chunk", "unbind", "tensor_split"}:
            return
        owner = node.func.value if isinstance(node.func, ast.Attribute) else args[0]
        if not isinstance(self._try(owner), torch.Tensor) and args:
            owner = args.pop(0)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        yield from self._written(owner, "split")
        places = {"dim": 0 if name == "unbind" else 1}
        places |= {"by": 0} if name == "split" else {}
        for role, place in places.items():
            wanted = keywords.get("split_size_or_sections" if role == "by" else role)
            part = args[place] if place < len(args) else wanted
            found = self._try(part) if part is not None else _UNKNOWN
            if isinstance(found, int):
                yield _hidden(role, found)

    def _call(self, node: ast.Call) -> Iterator[Operand]:
        module = self._module(node.func)
        below = [p for p in self._inner if p.frame.f_code.co_name not in _WRAPPERS]
        deepest = _deepest(below)
        if module is not None and deepest is not None and is_internal(below[0].file):
            yield from self._module_call(node, module, deepest)
            return
        self.operation = _called(node.func)
        if isinstance(node.func, ast.Attribute) and module is None:
            owner = self._try(node.func.value)
            if isinstance(owner, torch.Tensor):
                yield self._tensor(_text(node.func.value), "self", owner)
            elif isinstance(node.func.value, _WORKED_OUT):
                yield Operand(_text(node.func.value), "self")
        given = _given(below)
        for number, argument in enumerate(node.args):
            yield from self._written(argument, str(number), given.get(number))
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield from self._written(keyword.value, keyword.arg)

    def _module_call(self, node: ast.Call, module: nn.Module, deepest: Place) -> Iterator[Operand]:
        """A call of one of torch's modules, which may hold the one that failed."""
        failed: nn.Module = deepest.frame.f_locals["self"]
        self.operation = type(failed).__name__
        name, made = _text(node.func), self._made(node.func)
        outer = dict(self._arguments(node, module))
        given = _bound(self._inner, failed)
        if failed is module and all(role in outer for role in given):
            for role, (part, value) in outer.items():
                yield from self._written(part, role, given.get(role, value))
        else:
            name = _inside(name, module, failed)
            for number, (role, value) in enumerate(given.items()):
                what = f"{'input' if not number else role} of {name}"
                for path, tensor in elements(value):
                    text = self._known(tensor, outer) or what + path
                    yield self._tensor(text, role, tensor)
        first = getattr(failed, "batch_first", None)
        if isinstance(first, bool):
            yield _hidden("batch_first", first)
        yield from self._weights(name, failed, made)

    def _arguments(
        self, node: ast.Call, module: nn.Module
    ) -> Iterator[tuple[str, tuple[ast.expr, Any]]]:
        """The arguments of a call as written, by the parameters that they are for."""
        names = _parameters(module)
        given = _bound(self._inner, module)
        for number, part in enumerate(node.args):
            if number < len(names) and not isinstance(part, ast.Starred):
                yield names[number], (part, given.get(names[number]))
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, (keyword.value, given.get(keyword.arg))

    def _known(self, tensor: torch.Tensor, outer: Mapping[str, tuple[ast.expr, Any]]) -> str:
        """The argument, as written, that a tensor further in is."""
        for part, value in outer.values():
            for path, item in elements(value):
                same = item is tensor or (
                    item.shape == tensor.shape
                    and item.stride() == tensor.stride()
                    and self._storage_of(item) is not None
                    and self._storage_of(item) == self._storage_of(tensor)
                )
                if same:
                    return _text(part) + path
        return ""

    def _weights(self, name: str, module: nn.Module, made: tuple[str, int]) -> Iterator[Operand]:
        described = f"{type(module).__name__}({module.extra_repr()})"
        tensors = dict(members.own_parameters(module))
        shown = [key for key in _PARAMETERS if key in tensors]
        yield Operand(name, "module", value=described, file=made[0], line=made[1])
        for key in shown:
            yield self._tensor(f"{name}.{key}", key, tensors[key], made)

    def _made(self, node: ast.expr) -> tuple[str, int]:
        """Where the attribute that holds a module was set."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Attribute):
            return "", 0
        owner = self._try(node.value)
        for kind in type(owner).__mro__ if isinstance(owner, nn.Module) else ():
            found = assignment(kind, node.attr)
            if found is not None:
                return found
        return "", 0

    def _module(self, node: ast.expr) -> nn.Module | None:
        found = self._try(node)
        if found is _UNKNOWN and self._inner:
            # ``for layer in layers: x = layer(x)`` and the like: the frame below knows it.
            below = self._inner[0].frame
            owner = below.f_locals.get("self")
            found = owner if below.f_code.co_name in _WRAPPERS else None
        return found if isinstance(found, nn.Module) else None

    def _try(self, node: ast.AST) -> Any:
        """What an expression is worth; `_UNKNOWN` where that cannot be said."""
        try:
            return evaluate(node, names_in(self._place.frame))
        except Unknown:
            return _UNKNOWN

    def _written(self, node: ast.expr, role: str, given: Any = None) -> Iterator[Operand]:
        """The operand or operands that an expression stands for."""
        if isinstance(node, ast.Starred):
            node = node.value
        if isinstance(node, ast.Tuple | ast.List):
            for element in node.elts:
                yield from self._written(element, role)
            return
        value = self._try(node)
        stored = isinstance(node, ast.Name | ast.Attribute)
        if not stored and isinstance(given, torch.Tensor):
            value, stored = given, True  # the value itself, where ours is worked out again
        text = _text(node)
        if value is _UNKNOWN or isinstance(value, nn.Module):
            if isinstance(node, _WORKED_OUT):
                yield Operand(text, role)
        elif value is None or isinstance(
            value, int | float | str | slice | torch.dtype | torch.Size
        ):
            shown = str(list(value)) if isinstance(value, torch.Size) else repr(value)
            yield Operand(text, role, value=shown)
        else:
            for path, tensor in elements(value):
                found = self._tensor(text + path, role, tensor)
                yield found if stored else replace(found, device="")

    def _tensor(
        self, text: str, role: str, tensor: torch.Tensor, made: tuple[str, int] = ("", 0)
    ) -> Operand:
        return Operand(
            text,
            role,
            tuple(tensor.shape),
            str(tensor.dtype).removeprefix("torch."),
            str(tensor.device),
            self._storage_of(tensor),
            _range(tensor),
            *made,
        )

    def _names(self, place: Place) -> Iterator[Operand]:
        """Every tensor that a statement names, and the condition above a ``raise``."""
        if place.statement is None:
            return
        roots: list[ast.AST] = [place.statement]
        if isinstance(place.statement, ast.Raise | ast.Assert):
            roots += conditions(place)
        seen: set[str] = set()
        for root in roots:
            for node in _own(root):
                value = self._try(node) if isinstance(node, ast.Name | ast.Attribute) else None
                if isinstance(value, torch.Tensor | int) and _text(node) not in seen:
                    seen.add(_text(node))
                    yield from self._written(node, "")


def _own(root: ast.AST) -> Iterator[ast.expr]:
    """Expressions of a statement, without those of statements inside it."""
    for child in ast.iter_child_nodes(root):
        if not isinstance(child, ast.stmt):
            if isinstance(child, ast.expr):
                yield child
            yield from _own(child)


def _hidden(role: str, value: int) -> Operand:
    """A value that rules ask for, and that need not be told."""
    return Operand(str(value), role, value=str(value))


def _inside(name: str, module: nn.Module, failed: nn.Module) -> str:
    """What a module is called that another holds, of which the name is known."""
    if failed is module:
        return name
    path = {id(part): path for path, part in members.named_modules(module)}.get(id(failed))
    path = path or type(failed).__name__
    return name + re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", f".{path}")


def _parameters(module: nn.Module) -> list[str]:
    """The names of the parameters of a module's forward."""
    code = getattr(type(module).forward, "__code__", None)
    return list(code.co_varnames[1 : code.co_argcount]) if code is not None else []


def _bound(inner: list[Place], module: nn.Module) -> dict[str, Any]:
    """What a module was called with, by parameter, as its caller gave it."""
    for place in reversed(inner):
        held = place.frame.f_locals
        if place.frame.f_code.co_name == "_call_impl" and held.get("self") is module:
            names = _parameters(module)
            return {**dict(zip(names, held["args"], strict=False)), **held["kwargs"]}
    return {}


def _deepest(below: list[Place]) -> Place | None:
    """The innermost running forward of one of torch's modules."""
    for place in reversed(below):
        owner = place.frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and is_internal(place.file):
            return place
    return None


def _given(below: list[Place]) -> dict[int, Any]:
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


def _range(tensor: torch.Tensor) -> str:
    """The span of an integer tensor's values, which may be indices; else empty."""
    if tensor.dtype not in (torch.int64, torch.int32) or tensor.device.type != "cpu":
        return ""
    try:
        low, high = torch.aminmax(tensor.detach())
    except (RuntimeError, NotImplementedError):  # empty, fake or of a subclass's own mind
        return ""
    return f"{int(low)} to {int(high)}" if low != high else f"{int(low)}"


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
