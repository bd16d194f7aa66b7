"""What an expression in a stopped frame was worth, without running anything that matters.

Names and attributes are looked up as stored; tensors turn into weightless copies, and on
those the pure parts of an expression are run again: tensor methods (``k.transpose(-2, -1)``),
torch's functions, and torch's own modules with weightless parameters.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.weightless_module import NotOfTorch, light, module_without_values
from shapetrace.capture.values.tensors_in import stored

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_PLAIN = (int, float, bool, str, type(None), tuple, list, dict, slice, torch.Size, torch.dtype)
_FUNCTIONS = frozenset({len, int, min, max, abs, tuple, list})


class NotEvaluableError(Exception):
    """The expression cannot be worked out again."""


@dataclass(frozen=True)
class FrameNames:
    """What names stand for.

    Attributes:
        tables: Where names are looked up, in order: locals, globals, builtins.
        given: Worth of parts of the source, before what the tables say of them.
        modules: Other modules in the place of some, by identity.
    """

    tables: tuple[Mapping[str, Any], ...]
    given: Mapping[str, Any] = field(default_factory=dict)
    modules: Mapping[int, nn.Module] = field(default_factory=dict)


def frame_names(frame: FrameType) -> FrameNames:
    """What names stand for in a stopped frame."""
    return FrameNames((frame.f_locals, frame.f_globals, frame.f_builtins))


def evaluate_frozen(node: ast.AST, names: FrameNames) -> Any:
    """The value of an expression.

    Tensors that a variable or an attribute holds are returned themselves, results of their
    methods as tensors on the meta device.

    Raises:
        Unknown: Where it would take running code other than torch's own. Where torch raised,
            that is its cause.
    """
    try:
        return _value(node, names)
    except NotEvaluableError:
        raise
    except NotOfTorch as error:
        raise NotEvaluableError from error.__cause__
    except Exception as error:
        raise NotEvaluableError from error


def _value(node: ast.AST, names: FrameNames) -> Any:  # noqa: C901, PLR0912 - one case per kind of node
    if names.given and isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        text = ast.unparse(node)
        if text in names.given:
            return names.given[text]
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _named(name, names)
        case ast.Attribute(value=inner, attr=name):
            return _attribute(_value(inner, names), name)
        case ast.Tuple(elts=elts):
            return tuple(_items(elts, names))
        case ast.List(elts=elts):
            return _items(elts, names)
        case ast.UnaryOp(op=sign, operand=inner):
            return _UNARY[type(sign)](light(_value(inner, names)))
        case ast.Compare(left=left, ops=[compared], comparators=[right]):
            sides = light(_value(left, names)), light(_value(right, names))
            return _COMPARED[type(compared)](*sides)
        case ast.BinOp(left=left, op=sign, right=right):
            return _BINARY[type(sign)](light(_value(left, names)), light(_value(right, names)))
        case ast.Slice(lower=lower, upper=upper, step=step):
            parts = [None if part is None else _value(part, names) for part in (lower, upper, step)]
            return slice(*parts)
        case ast.Subscript(value=inner, slice=index):
            return _item(_value(inner, names), _value(index, names))
        case ast.Call():
            return _called(node, names)
    raise NotEvaluableError


def _items(nodes: list[ast.expr], names: FrameNames) -> list[Any]:
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found += _value(node.value, names)
        else:
            found.append(_value(node, names))
    return found


def _named(name: str, names: FrameNames) -> Any:
    for table in names.tables:
        if name in table:
            return table[name]
    raise NotEvaluableError


def _attribute(owner: Any, name: str) -> Any:
    if isinstance(owner, torch.Tensor):
        if name in {"shape", "dtype", "device", "ndim", "is_cuda"}:
            return getattr(owner, name)
        if name in {"T", "mT", "H", "real", "imag"}:
            return getattr(light(owner), name)
        raise NotEvaluableError
    if isinstance(owner, nn.Module):
        found = stored(owner, name)
        if found is None:
            found = owner._modules.get(name)  # noqa: SLF001 - a property must not run
        if found is not None:
            return found
        static = inspect.getattr_static(type(owner), name, None)
        if isinstance(static, _PLAIN) and static is not None:
            return static
        raise NotEvaluableError
    if isinstance(owner, ModuleType):
        return vars(owner)[name]
    return inspect.getattr_static(owner, name)


def _item(owner: Any, index: Any) -> Any:
    if isinstance(owner, torch.Tensor):
        return light(owner)[light(index)]
    if isinstance(owner, nn.ModuleList | nn.Sequential) and isinstance(index, int):
        return list(owner)[index]
    if isinstance(owner, nn.ModuleDict):
        return dict(owner.items())[index]
    if isinstance(owner, _PLAIN):
        return owner[index]  # type: ignore[index]
    raise NotEvaluableError


def _called(node: ast.Call, names: FrameNames) -> Any:
    args = light(_items(node.args, names))
    kwargs = {k.arg: light(_value(k.value, names)) for k in node.keywords if k.arg is not None}
    if len(kwargs) < len(node.keywords):
        raise NotEvaluableError
    if isinstance(node.func, ast.Attribute):
        try:
            owner = _value(node.func.value, names)
        except NotEvaluableError:
            owner = None
        if isinstance(owner, torch.Tensor):
            return _method(owner, node.func.attr, args, kwargs)
    function = _value(node.func, names)
    if isinstance(function, nn.Module):
        with torch.no_grad():
            return module_without_values(function, names.modules)(*args, **kwargs)
    if function in _FUNCTIONS or _is_pure(function):
        with torch.device("meta"):
            return function(*args, **kwargs)
    raise NotEvaluableError


def _is_pure(function: Any) -> bool:
    """A function of torch that neither writes nor draws: on meta tensors it costs nothing."""
    name = getattr(function, "__name__", "_")
    known = getattr(torch, name, None) is function
    known = known or getattr(torch.nn.functional, name, None) is function
    return known and not name.endswith("_") and not name.startswith(("set_", "manual", "rand"))


def _method(owner: torch.Tensor, name: str, args: list[Any], kwargs: Mapping[str, Any]) -> Any:
    if name.endswith("_") or name in {"item", "tolist", "numpy", "backward", "register_hook"}:
        raise NotEvaluableError
    return getattr(light(owner), name)(*args, **kwargs)
