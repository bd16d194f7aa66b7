"""Which ways through a function a return annotation speaks for, and which of them never ran.

An annotation that runs have proven holds for what ran. Where another `return`, or another
binding of a name that is returned, did not run, it holds as far as the code itself shows:
a literal None is None, and ``x = x.contiguous()`` is what `x` was.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shapetrace.annotation.inference.calls import PathSteps
from shapetrace.annotation.inference.reaching import Definition, Env, returns_of
from shapetrace.annotation.plan.annotation import (
    NONE,
    Annotation,
    Plain,
    Repeated,
    TupleOf,
    Union,
    UnknownPart,
    union,
)
from shapetrace.source_code import Span, own_nodes

_KEEP = frozenset(
    {
        *("contiguous", "clone", "detach", "requires_grad_", "masked_fill", "masked_fill_"),
        *("dropout", "relu", "gelu", "silu", "sigmoid", "tanh", "softmax", "log_softmax"),
        *("relu_", "dropout_", "clamp", "clamp_", "add_", "mul_", "div_", "sub_", "nan_to_num"),
    }
)
"""Functions and methods of torch's whose result has the sizes of their first operand."""


@dataclass(frozen=True, slots=True)
class OpenPath:
    """A way to a return value that did not run.

    Attributes:
        line: Line of the `return`, or of the binding.
        steps: The part of the value.
        shows: What the code itself shows of it; None for nothing.
    """

    line: int
    steps: PathSteps
    shows: Annotation | None


class Ran:
    """Which code of a file ran."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Take the places of all instructions that ran."""
        self._starts: dict[int, list[int]] = {}
        for line, column, _, _ in spans:
            self._starts.setdefault(line, []).append(column)

    def __contains__(self, node: object) -> bool:
        """Whether any instruction of a statement or an expression ran."""
        if not isinstance(node, ast.stmt | ast.expr):
            return False
        first, last = node.lineno, node.end_lineno or node.lineno
        for line in range(first, last + 1):
            for column in self._starts.get(line, ()):
                after = line > first or column >= node.col_offset
                before = line < last or column < (node.end_col_offset or 0)
                if after and before:
                    return True
        return False


def open_paths(
    node: ast.FunctionDef | ast.AsyncFunctionDef, ran: Ran, classes: frozenset[str] = frozenset()
) -> tuple[OpenPath, ...]:
    """The ways to a function's return value that did not run.

    Args:
        node: The function.
        ran: What ran.
        classes: Names of the file's own classes, whose calls make what they are.
    """
    walk = _Walk(ran.__contains__, classes)
    found: list[OpenPath] = []
    for statement, env in returns_of(node):
        if statement.value is not None:
            paths = walk.value if statement in ran else walk.unseen
            found += paths(statement.value, env, ())
        elif statement not in ran:
            found.append(OpenPath(statement.lineno, (), NONE))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Walk:
    ran: Callable[[object], bool]
    classes: frozenset[str]

    def value(self, node: ast.expr, env: Env, steps: PathSteps) -> Iterator[OpenPath]:
        """Of an expression that ran: the parts of it, and of names in it, that did not."""
        match node:
            case ast.Tuple(elts=items) if not any(isinstance(i, ast.Starred) for i in items):
                for number, item in enumerate(items):
                    yield from self.value(item, env, (*steps, f"[{number}]"))
            case ast.IfExp(body=body, orelse=other):
                for branch in (body, other):
                    paths = self.value if self.ran(branch) else self.unseen
                    yield from paths(branch, env, steps)
            case ast.Name(id=name):
                for definition in env.get(name, ()):
                    yield from self._defined(definition, steps)

    def _defined(self, definition: Definition, steps: PathSteps) -> Iterator[OpenPath]:
        value, env = definition.value, definition.env
        if definition.statement is None:
            return  # a parameter
        if self.ran(definition.statement):
            if isinstance(value, ast.IfExp | ast.Name | ast.Tuple):
                yield from self.value(value, env, steps)
        elif value is not None:
            yield from self.unseen(value, env, steps)
        elif not definition.in_place:
            yield OpenPath(definition.statement.lineno, steps, None)

    def unseen(self, node: ast.expr, env: Env, steps: PathSteps) -> Iterator[OpenPath]:
        """Of an expression that did not run: what the code shows of each part."""
        match node:
            case ast.Constant(value=None):
                yield OpenPath(node.lineno, steps, NONE)
            case ast.Constant(value=value):
                yield OpenPath(node.lineno, steps, Plain(type(value).__name__))
            case ast.Tuple(elts=items) if not any(isinstance(i, ast.Starred) for i in items):
                for number, item in enumerate(items):
                    yield from self.unseen(item, env, (*steps, f"[{number}]"))
            case ast.IfExp(body=body, orelse=other):
                yield from self.unseen(body, env, steps)
                yield from self.unseen(other, env, steps)
            case ast.Call(func=ast.Name(id=name)) if name in self.classes:
                yield OpenPath(node.lineno, steps, Plain(name))
            case ast.Call() if _operand(node) is not None:
                yield from self._kept(_operand(node), env, steps, node.lineno)
            case _:
                yield OpenPath(node.lineno, steps, None)

    def _kept(
        self, operand: ast.expr | None, env: Env, steps: PathSteps, line: int
    ) -> Iterator[OpenPath]:
        """Of ``x.contiguous()``: nothing where `x` is what other ways return, else unknown."""
        if isinstance(operand, ast.Name) and operand.id in env:
            for definition in env[operand.id]:
                if definition.statement is None or not self.ran(definition.statement):
                    yield OpenPath(line, steps, None)
                    return
            return
        yield OpenPath(line, steps, None)


def _operand(node: ast.Call) -> ast.expr | None:
    """What a call keeps the sizes of; None for a call of anything else."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else ""
    if name not in _KEEP or not isinstance(function, ast.Attribute):
        return None
    owner = function.value
    torch = isinstance(owner, ast.Name) and owner.id in ("F", "torch")
    functional = isinstance(owner, ast.Attribute) and owner.attr == "functional"
    if torch or functional:
        return node.args[0] if node.args else None
    return owner


def _unrun_bindings(
    node: ast.FunctionDef | ast.AsyncFunctionDef, ran: Ran
) -> Mapping[str, tuple[int, ...]]:
    """By variable, the lines of its bindings that did not run."""
    found: dict[str, list[int]] = {}
    for inner in own_nodes(node.body):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner not in ran:
            found.setdefault(inner.id, []).append(inner.lineno)
    return {name: tuple(lines) for name, lines in found.items()}


@dataclass(frozen=True, slots=True)
class Paths:
    """What of a function did not run.

    Attributes:
        open: Ways to its return value.
        unrun: By variable, the lines of its bindings.
    """

    open: tuple[OpenPath, ...] = ()
    unrun: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


NO_PATHS = Paths()


def paths_of(source: bytes, spans: Iterable[Span]) -> dict[int, Paths]:
    """What of each function of a file did not run, by the line of its ``def``.

    Args:
        source: The file.
        spans: The places of what ran.
    """
    ran = Ran(tuple(spans))
    tree = ast.parse(source)
    classes = frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return {
        node.lineno: Paths(open_paths(node, ran, classes), _unrun_bindings(node, ran))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def widened(found: Annotation, path: OpenPath) -> Annotation | None:
    """An annotation that also allows what a way that did not run shows.

    Args:
        found: What the runs showed.
        path: The way.

    Returns:
        The annotation; None where nothing true of the whole value is left to say.
    """
    shown = UnknownPart() if path.shows is None else path.shows
    new = _at(found, path.steps, shown)
    return None if isinstance(new, UnknownPart) else new


def _at(found: Annotation, steps: PathSteps, shown: Annotation) -> Annotation:
    if not steps:
        return union([found, shown])
    match found:
        case TupleOf(items) if steps[0][1:-1].isdigit() and int(steps[0][1:-1]) < len(items):
            number = int(steps[0][1:-1])
            new = _at(items[number], steps[1:], shown)
            return TupleOf((*items[:number], new, *items[number + 1 :]))
        case Repeated("tuple", item):
            return Repeated("tuple", _at(item, steps[1:], shown))
        case Union(options):
            return union([_at(option, steps, shown) for option in options])
    return found if found == NONE else UnknownPart()
