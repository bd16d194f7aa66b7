"""What a constructor's source says of the size that an attribute has."""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.frozen_eval import FrameNames, NotEvaluableError, evaluate_frozen
from shapetrace.capture.failure.traceback import class_at, function_at
from shapetrace.capture.source.registry import is_internal
from shapetrace.records.trace import Origin


def setting(owner: Any, name: str, text: str, argument: str) -> list[Origin]:
    """An argument of the constructor of a module that an attribute holds.

    Args:
        owner: The object whose attribute it is.
        name: The attribute.
        text: How the module is written in the failed statement.
        argument: The argument: ``in_features``.

    Returns:
        The argument, where it stands in the source, with what is written for it.
    """
    found = _assignment(owner, name)
    if found is None:
        return [Origin(f"{argument} of `{text}`", "setting")]
    source = _written_for(found.value, argument)
    here = Origin(
        text=f"{argument} of `{text}`",
        kind="setting",
        axes=(),
        file=found.file,
        line=found.value.lineno,
        source=source,
    )
    return [here, *_parameter(source, found)]


def constructed_attribute(
    owner: Any, name: str, text: str, value: Any, axis: int | None
) -> list[Origin]:
    """An attribute that holds a tensor or a number.

    Args:
        owner: The object whose attribute it is.
        name: The attribute.
        text: How it is written in the failed statement.
        value: What it holds.
        axis: Which axis of it; None for a number.

    Returns:
        The attribute, and the constructor's argument that its size follows.
    """
    found = _assignment(owner, name)
    axes = () if axis is None else (axis,)
    if found is None:
        return [Origin(text, "attribute", axes)]
    here = Origin(text, "attribute", axes, found.file, found.value.lineno)
    argument = _followed(found, value, axis)
    return [here, *(_parameter(argument, found) if argument else [])]


@dataclass(frozen=True, slots=True)
class _Assignment:
    """What a constructor sets an attribute to.

    Attributes:
        value: The expression.
        init: The constructor's source.
        file: Its file.
        names: The globals of its module.
    """

    value: ast.expr
    init: ast.FunctionDef
    file: str
    names: dict[str, Any]


def _assignment(owner: Any, name: str) -> _Assignment | None:
    """The one statement of an object's constructors that sets an attribute."""
    for kind in type(owner).__mro__:
        init = vars(kind).get("__init__")
        if not isinstance(init, types.FunctionType):
            continue
        file = init.__code__.co_filename
        if is_internal(file):
            return None
        tree = function_at(file, init.__code__)
        if tree is None:
            continue
        if _is_set_elsewhere(kind, file, tree, name):
            return None
        own = [value for node in ast.walk(tree) if (value := _set_to(node, name)) is not None]
        if own:
            only = len(own) == 1
            return _Assignment(own[0], tree, file, init.__globals__) if only else None
    return None


def _is_set_elsewhere(kind: type, file: str, init: ast.FunctionDef, name: str) -> bool:
    """Whether another function of a class than its constructor sets an attribute."""
    whole = class_at(file, kind, init)
    inside = {id(node) for node in ast.walk(init)}
    for node in ast.walk(whole) if whole is not None else ():
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                if attr == name and id(node) not in inside:
                    return True
    return False


def _set_to(node: ast.AST, name: str) -> ast.expr | None:
    """What a statement sets ``self.name`` to."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)]):
            return node.value if attr == name else None
        case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=attr)):
            return node.value if attr == name else None
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for target, value in zip(targets, values, strict=False):
                if ast.unparse(target) == f"self.{name}":
                    return value
        case ast.Call(
            func=ast.Attribute(attr="register_buffer" | "register_parameter"),
            args=[ast.Constant(value=attr), value, *_],
        ):
            return value if attr == name else None
    return None


def _written_for(node: ast.expr, argument: str) -> str:
    """What a call of one of torch's modules says for an argument."""
    if not isinstance(node, ast.Call):
        return ""
    for keyword in node.keywords:
        if keyword.arg == argument:
            return ast.unparse(keyword.value)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    kind = getattr(nn, name, None)
    if not inspect.isclass(kind):
        return ""
    rnn = issubclass(kind, nn.RNNBase)
    init = nn.RNNBase.__init__ if rnn else kind.__init__
    names = list(inspect.signature(init).parameters)[2 if rnn else 1 :]
    if argument not in names or any(isinstance(part, ast.Starred) for part in node.args):
        return ""
    place = names.index(argument)
    return ast.unparse(node.args[place]) if place < len(node.args) else ""


def _parameter(source: str, found: _Assignment) -> list[Origin]:
    """The constructor's argument that a source text is."""
    arguments = found.init.args
    names = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    if source not in names:
        return []
    return [Origin(source, "constructor", (), found.file, found.init.lineno)]


def _followed(found: _Assignment, value: Any, axis: int | None) -> str:
    """The one argument of a constructor that a size of an attribute follows.

    Its worth is gone with the constructor's frame. It is taken to be the size itself, and
    that is tried: the expression must then have all the sizes that the attribute has, and
    another size where the argument is another.
    """
    size = value if axis is None else value.shape[axis]
    defaults = _defaults(found.init)
    used = {part.id for part in ast.walk(found.value) if isinstance(part, ast.Name)}
    names = [name for name in defaults if name in used]
    fitting = []
    for name in names:
        others = {other: held for other, held in defaults.items() if other != name}
        if _sizes(found, others | {name: size}) != _sizes_of(value):
            continue
        moved = _sizes(found, others | {name: size + 1})
        if moved is not None and moved[axis or 0] != size:
            fitting.append(name)
    return fitting[0] if len(fitting) == 1 else ""


def _defaults(init: ast.FunctionDef) -> dict[str, Any]:
    """A constructor's arguments with their defaults; None for those without."""
    arguments = init.args.args[1:]
    values = [None] * (len(arguments) - len(init.args.defaults)) + list(init.args.defaults)
    found = {}
    for argument, default in zip(arguments, values, strict=True):
        found[argument.arg] = default.value if isinstance(default, ast.Constant) else None
    return found


def _sizes(found: _Assignment, given: dict[str, Any]) -> tuple[int, ...] | None:
    try:
        return _sizes_of(
            evaluate_frozen(found.value, FrameNames((found.names, vars(builtins)), given))
        )
    except NotEvaluableError:
        return None


def _sizes_of(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    return (value,) if isinstance(value, int) else None
