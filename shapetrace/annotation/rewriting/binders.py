"""Which names a function's statements bind, and how each can take an annotation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst


@dataclass(frozen=True, slots=True)
class Binders:
    """What a function's body says of its names.

    Attributes:
        unannotatable: Names declared global or nonlocal.
        declared: Names with an annotation of their own somewhere in the body.
    """

    unannotatable: frozenset[str]
    declared: set[str]

    @classmethod
    def of(cls, function: cst.FunctionDef) -> Binders:
        """Read a function's body, without the functions and classes in it."""
        reader = _Reader()
        function.body.visit(reader)
        return cls(frozenset(reader.outer), reader.declared)


class _Reader(cst.CSTVisitor):
    def __init__(self) -> None:
        self.outer: set[str] = set()
        self.declared: set[str] = set()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: ARG002 - LibCST's call
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:  # noqa: ARG002
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002
        return False

    def visit_NameItem(self, node: cst.NameItem) -> None:
        self.outer.add(node.name.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if isinstance(node.target, cst.Name):
            self.declared.add(node.target.value)


def plain_target(node: cst.Assign) -> str:
    """The name of ``name = value``; empty for any other assignment."""
    target = node.targets[0].target
    return target.value if len(node.targets) == 1 and isinstance(target, cst.Name) else ""


def declared_first(statement: cst.BaseStatement) -> Iterator[tuple[cst.CSTNode, str]]:
    """Names that a statement binds otherwise than by ``name = value``, each with its place.

    They can be declared on a line before the statement. What an ``elif`` binds can't: there
    is no room before it.
    """
    match statement:
        case cst.SimpleStatementLine(body=small):
            for one in small:
                yield from _bound_by(one)
        case cst.For(target=target):
            yield from ((statement, name) for name in _names(target))
            yield from _walruses(statement.iter)
        case cst.With(items=items):
            for item in items:
                if item.asname is not None:
                    yield from ((statement, name) for name in _names(item.asname.name))
        case cst.If(test=test) | cst.While(test=test):
            yield from _walruses(test)


def _bound_by(statement: cst.BaseSmallStatement) -> Iterator[tuple[cst.CSTNode, str]]:
    if isinstance(statement, cst.Assign) and not plain_target(statement):
        for target in statement.targets:
            yield from ((statement, name) for name in _names(target.target))
    yield from _walruses(statement)


def _names(target: cst.BaseExpression) -> Iterator[str]:
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _names(element.value)


class _Walrus(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, str]] = []

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        if isinstance(node.target, cst.Name):
            self.found.append((node, node.target.value))

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002
        return False


def _walruses(node: cst.CSTNode) -> list[tuple[cst.CSTNode, str]]:
    walrus = _Walrus()
    node.visit(walrus)
    return walrus.found
