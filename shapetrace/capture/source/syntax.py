"""Questions about a syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapetrace.source_code import own_nodes


def text_of(annotation: ast.expr | None) -> str:
    """An annotation as written; empty when there is none."""
    return "" if annotation is None else ast.unparse(annotation)


def parameters_of(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters, in order, those with stars last."""
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return plain + [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]


def arguments_dict(parameters: Sequence[ast.arg]) -> ast.expr:
    """A dict of all arguments by name."""
    names: list[ast.expr | None] = [ast.Constant(p.arg) for p in parameters]
    return ast.Dict(names, [ast.Name(p.arg, ast.Load()) for p in parameters])


_IN_BRACES = re.compile(r"\{([^{}]+)\}")


def braces_in(function: ast.FunctionDef) -> Iterator[str]:
    """The parts in braces of the strings in a function's annotations."""
    annotations = [p.annotation for p in parameters_of(function.args)] + [function.returns]
    annotations += [n.annotation for n in own_nodes(function.body) if isinstance(n, ast.AnnAssign)]
    for annotation in annotations:
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _IN_BRACES.findall(node.value)


def own_parameter(node: ast.FunctionDef, parameters: Sequence[ast.arg], *, in_class: bool) -> str:
    """The parameter that is the method's object, whatever it is called; empty without one."""
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    if not parameters or static or not (in_class or parameters[0].arg == "self"):
        return ""
    return parameters[0].arg if node.args.posonlyargs or node.args.args else ""


def bound_names(target: ast.expr) -> Iterator[str]:
    """Plain names that an assignment target binds."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Starred(value=value):
            yield from bound_names(value)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from bound_names(element)


def attributes_in(target: ast.expr) -> Iterator[ast.Attribute]:
    """Attributes that an assignment target sets."""
    match target:
        case ast.Attribute():
            yield target
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from attributes_in(element)


def is_generator(node: ast.FunctionDef) -> bool:
    """Whether a function yields."""
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node.body))


def predeclared(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Bare annotations (``q: Float[...]`` with no value) declare later assignments."""
    for node in own_nodes(body):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            yield ast.unparse(node.target), text_of(node.annotation)


def holds_no_tensor(value: ast.expr) -> bool:
    """Whether an expression is plainly a number, a shape or the like, and runs nothing."""
    match value:
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.Attribute(value=ast.Name(), attr=name):
            return name in {"shape", "dtype", "device", "ndim", "training"}
        case ast.Subscript(value=inner, slice=ast.Constant() | ast.UnaryOp(operand=ast.Constant())):
            return holds_no_tensor(inner)
    return False


def may_run(value: ast.expr) -> bool:
    """Whether an expression may run an operator: it calls or computes something."""
    return any(isinstance(node, ast.Call | ast.BinOp) for node in ast.walk(value))
