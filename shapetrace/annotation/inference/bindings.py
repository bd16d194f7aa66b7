"""Where a function binds its variables, and what room there is for an annotation."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shapetrace.source_code import own_nodes

BindingForm = Literal["plain", "before", "annotated", "none"]


@dataclass(frozen=True, slots=True)
class BoundPlace:
    """A place where a variable is bound.

    Attributes:
        line: Line of the statement.
        name: The variable.
        form: ``plain`` for ``name = value``; ``before`` where a declaration on a line before
            the statement is the only way; ``annotated`` where it has one; ``none`` where it
            can't have one.
    """

    line: int
    name: str
    form: BindingForm


def bindings_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[BoundPlace]:
    """The bindings of a function's variables, in order of their lines."""
    outer = {
        name
        for node in own_nodes(function.body)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    found = [binding for binding in _in_block(function.body, function) if binding.name not in outer]
    return sorted(found, key=lambda binding: binding.line)


def _in_block(body: Sequence[ast.stmt], function: ast.AST) -> Iterator[BoundPlace]:
    one_line = bool(body) and body[0].lineno == getattr(function, "lineno", 0)
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for binding in _of_statement(node):
            room = binding.form != "before" or not one_line
            yield binding if room else BoundPlace(binding.line, binding.name, "none")
        yield from _inside(node)


def _inside(node: ast.stmt) -> Iterator[BoundPlace]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, [])
        is_elif = name == "orelse" and len(block) == 1 and isinstance(block[0], ast.If)
        for binding in _in_block(block, node):
            hidden = is_elif and binding.form == "before" and binding.line == block[0].lineno
            yield BoundPlace(binding.line, binding.name, "none") if hidden else binding
    for handler in getattr(node, "handlers", []):
        yield from _in_block(handler.body, handler)
    for case in getattr(node, "cases", []):
        yield from _in_block(case.body, case)


def _of_statement(node: ast.stmt) -> Iterator[BoundPlace]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            yield BoundPlace(node.lineno, name, "plain")
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (BoundPlace(node.lineno, name, "before") for name in _names(target))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield BoundPlace(node.lineno, name, "annotated")
        case ast.AugAssign(target=ast.Name(id=name)):
            yield BoundPlace(node.lineno, name, "none")
        case ast.For(target=target):
            yield from (BoundPlace(node.lineno, name, "before") for name in _names(target))
        case ast.With(items=items):
            targets = [item.optional_vars for item in items if item.optional_vars is not None]
            for target in targets:
                yield from (BoundPlace(node.lineno, name, "before") for name in _names(target))
    for walrus in _walruses(node):
        yield BoundPlace(walrus.lineno, walrus.target.id, "before")


def _walruses(node: ast.stmt) -> Iterator[ast.NamedExpr]:
    """Walruses in a statement itself, not in the statements inside it."""
    expressions = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    for inner in own_nodes(expressions):
        if isinstance(inner, ast.NamedExpr):
            yield inner


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _names(element)
