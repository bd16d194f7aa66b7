"""Source made to check its own annotations: for the process that proves them.

Every function of interest gets a decorator in the innermost place, and the annotated
assignments in it report their value. Functions are numbered in the order of their ``def``
lines, which annotating a file does not change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

CHECKED = "__shapetrace_checked__"
CHECK_LOCAL = "__shapetrace_check_local__"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def definitions_in(tree: ast.AST) -> list[_Function]:
    """The functions of a file, in the order of their ``def`` lines."""
    found = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def checked_tree(source: bytes, wanted: Mapping[int, frozenset[str]]) -> ast.Module:
    """A file's syntax tree in which some functions check themselves.

    Args:
        source: The file, with annotations.
        wanted: By number of the function, its variables to check.
    """
    tree = ast.parse(source)
    for number, node in enumerate(definitions_in(tree)):
        if number in wanted:
            _check(node, number, wanted[number])
    return ast.fix_missing_locations(tree)


def _check(node: _Function, number: int, names: frozenset[str]) -> None:
    call = ast.Call(ast.Name(CHECKED, ast.Load()), [ast.Constant(number)], [])
    node.decorator_list.append(ast.copy_location(call, node))
    if names:
        node.body = _Locals(number, names).block(node.body)


class _Locals:
    """Adds the checks of variables to a function's body."""

    def __init__(self, number: int, names: frozenset[str]) -> None:
        self._number = number
        self._names = names
        self._declared: dict[str, ast.expr] = {}

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            result.extend(self._with_checks(statement))
        return result

    def _with_checks(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            return self._annotated(node, node.target.id)
        bound = [name for name in _bound(node) if name in self._declared]
        checks = [self._check(name, ast.Name(name, ast.Load()), node) for name in bound]
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self.block(getattr(node, field)))
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            part.body = self.block(part.body)
        if hasattr(node, "body"):
            node.body = [*checks, *node.body]
            return [node]
        return [node, *checks] if not isinstance(node, ast.Return | ast.Raise) else [node]

    def _annotated(self, node: ast.AnnAssign, name: str) -> list[ast.stmt]:
        if name not in self._names:
            return [node]
        if node.value is None:
            self._declared[name] = node.annotation
            return [node]
        return [node, self._check(name, ast.Name(name, ast.Load()), node, node.annotation)]

    def _check(
        self, name: str, value: ast.expr, at: ast.stmt, annotation: ast.expr | None = None
    ) -> ast.stmt:
        hint = annotation if annotation is not None else self._declared[name]
        call = ast.Call(
            ast.Name(CHECK_LOCAL, ast.Load()),
            [ast.Constant(self._number), ast.Constant(name), value, hint],
            [],
        )
        return ast.copy_location(ast.Expr(call), at)


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement itself binds, not the statements inside it."""
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _names(target)
        case ast.For(target=target):
            yield from _names(target)
        case ast.With(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _names(item.optional_vars)
    expressions = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    for inner in (inner for child in expressions for inner in ast.walk(child)):
        if isinstance(inner, ast.NamedExpr):
            yield inner.target.id


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _names(element)
