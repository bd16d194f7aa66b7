"""What a file's source says of its functions: parameters, defaults, bindings, order."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shapetrace.annotation.inference.bindings import BoundPlace, bindings_of
from shapetrace.source_code import own_nodes

ParameterKind = Literal["plain", "args", "kwargs"]
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_JIT = ("jit.script", "jit.script_method", "script_method", "jit.export")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter.

    Attributes:
        name: Its name.
        kind: Plain, ``*args`` or ``**kwargs``.
        default: The type of its literal default (``None``, ``int``, ...); else empty.
        annotation: Its annotation as written; empty when it has none.
    """

    name: str
    kind: ParameterKind = "plain"
    default: str = ""
    annotation: str = ""


@dataclass(frozen=True, slots=True)
class SourceSignature:
    """A function as its source has it.

    Attributes:
        line: Line of its ``def``.
        qualname: Its qualified name, without ``<locals>``.
        parameters: Its parameters in the order of the signature.
        returns: Its return annotation as written; empty when it has none.
        may_return_none: Whether a ``return`` without a value, or of None, is in it.
        left_alone: Why it must not be annotated; empty when it may be.
        bindings: Where its variables are bound, in order.
        visible: Names that stand for something when its annotations are evaluated.
    """

    line: int
    qualname: str
    parameters: tuple[Parameter, ...]
    returns: str
    may_return_none: bool
    left_alone: str
    bindings: tuple[BoundPlace, ...]
    visible: frozenset[str]

    @property
    def passes_on(self) -> bool:
        """Whether it takes anything at all, as a decorator's wrapper does: `*args, **kwargs`."""
        kinds = [one.kind for one in self.parameters if one.name not in ("self", "cls")]
        return sorted(kinds) == ["args", "kwargs"]


def signatures(source: bytes) -> tuple[SourceSignature, ...]:
    """The functions of a file, in the order of their ``def`` lines.

    Raises:
        SyntaxError: The source can't be parsed.
    """
    tree = ast.parse(source)
    lazy = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )
    names = list(_top_level(tree))
    found = [
        _signature(
            node,
            qualname,
            siblings,
            frozenset(name for name, line in names if lazy or line < node.lineno),
        )
        for node, qualname, siblings in _functions(tree.body, ())
    ]
    return tuple(sorted(found, key=lambda signature: signature.line))


def _functions(
    body: Sequence[ast.stmt], scope: tuple[str, ...]
) -> Iterator[tuple[FunctionNode, str, Sequence[ast.stmt]]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node, ".".join((*scope, node.name)), body
                yield from _functions(node.body, (*scope, node.name))
            case ast.ClassDef():
                yield from _functions(node.body, (*scope, node.name))
            case _:
                for block in _blocks(node):
                    yield from _functions(block, scope)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body
    for case in getattr(node, "cases", []):
        yield case.body


def _signature(
    node: FunctionNode, qualname: str, siblings: Sequence[ast.stmt], visible: frozenset[str]
) -> SourceSignature:
    return SourceSignature(
        line=node.lineno,
        qualname=qualname,
        parameters=tuple(_parameters(node.args)),
        returns="" if node.returns is None else ast.unparse(node.returns),
        may_return_none=any(
            isinstance(inner, ast.Return) and (inner.value is None or _is_none(inner.value))
            for inner in own_nodes(node.body)
        ),
        left_alone=_left_alone(node, siblings),
        bindings=tuple(bindings_of(node)),
        visible=visible,
    )


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    plain = [*arguments.posonlyargs, *arguments.args]
    without = len(plain) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [*([None] * without), *arguments.defaults]
    for argument, default in zip(plain, defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.vararg is not None:
        yield _parameter(arguments.vararg, None, "args")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg is not None:
        yield _parameter(arguments.kwarg, None, "kwargs")


def _parameter(
    argument: ast.arg, default: ast.expr | None, kind: ParameterKind = "plain"
) -> Parameter:
    text = "" if argument.annotation is None else ast.unparse(argument.annotation)
    literal = ""
    if isinstance(default, ast.Constant):
        literal = "None" if default.value is None else type(default.value).__name__
    return Parameter(argument.arg, kind, literal, text)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _left_alone(node: FunctionNode, siblings: Sequence[ast.stmt]) -> str:
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    if any(name.endswith(_JIT) for name in names):
        return "is compiled by torch.jit, which does not read jaxtyping"
    overloads = (
        other
        for other in siblings
        if isinstance(other, ast.FunctionDef | ast.AsyncFunctionDef) and other.name == node.name
    )
    if any(_is_overload(other) for other in overloads):
        return "has overloads, which are its annotations"
    return ""


def _is_overload(node: FunctionNode) -> bool:
    return any(
        ast.unparse(decorator).split(".")[-1] == "overload" for decorator in node.decorator_list
    )


def _top_level(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names that stand for classes at run time: classes and imports, each with its line."""
    for node in tree.body:
        match node:
            case ast.ClassDef():
                yield node.name, node.end_lineno or node.lineno
            case ast.ImportFrom() | ast.Import():
                for alias in node.names:
                    yield (alias.asname or alias.name).split(".")[0], node.lineno
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
                yield name, node.lineno  # a named tuple, made by a call
