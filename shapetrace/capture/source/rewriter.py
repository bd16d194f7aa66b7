"""Rewrite a syntax tree so that it reports every value it binds.

Seven functions are called from rewritten code: on entry, when a forward has its arguments,
for each argument, assignment and return, after statements that bind nothing, and on exit.
They are called through string constants (`SEE` and the others), which `swap` replaces by
the functions themselves: rewritten code needs no global name and no builtin.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import TypeVar

from shapetrace.capture.source.registry import (
    BEGIN,
    ENTER,
    EXIT,
    HOLD,
    MARK,
    PASS,
    REGISTRY,
    SEE,
    SEE_ALL,
    SEE_ATTRIBUTE,
    SHIELD,
    BoundSite,
    FunctionSite,
    is_internal,
)
from shapetrace.capture.source.syntax import (
    arguments_dict,
    attributes_in,
    bound_names,
    braces_in,
    holds_no_tensor,
    is_generator,
    may_run,
    own_parameter,
    parameters_of,
    predeclared,
    text_of,
)
from shapetrace.records.trace import RecordKind, Site

SHIELDED = frozenset({"svdvals", "eigvalsh", "eigvals", "flex_attention"})
"""Functions that behave differently under any dispatch mode: called with none active."""

_Node = TypeVar("_Node", bound=ast.AST)
_Function = TypeVar("_Function", ast.FunctionDef, ast.AsyncFunctionDef)


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Constant(function), list(arguments), [])


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


# Methods named after syntax need no docstrings of their own.
# ruff: noqa: D102


class Rewriter(ast.NodeTransformer):
    """Adds the recording calls; one instance per file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.internal = is_internal(file)
        self.scope: list[str] = []
        self.in_function = False
        self.predeclared: dict[str, str] = {}
        self.declared: dict[str, str] = {}
        self.returns = ""
        self.owner = -1
        self._in_class = False

    # Scopes.

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self.in_function
        self.in_function = False
        self.scope.append(node.name)
        node.body = self._block(node.body)
        self.scope.pop()
        self.in_function = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._passed(node, "async")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if is_generator(node):
            return self._passed(node, "generator")
        if node.name.startswith("__") and node.name.endswith("__"):
            return node  # protocol methods run inside other machinery, torch's included
        saved = self.in_function, self.predeclared, self.declared, self.returns
        qualname = self._qualname(node.name)
        self._in_class = bool(self.scope) and self.scope[-1] != "<locals>"
        self.scope += [node.name, "<locals>"]
        self.in_function = True
        self.predeclared = dict(predeclared(node.body))
        self.declared = dict(self.predeclared)
        self.returns = text_of(node.returns)
        self._rewrite_body(node, qualname)
        del self.scope[-2:]
        self.in_function, self.predeclared, self.declared, self.returns = saved
        return node

    def _passed(self, node: _Function, kind: str) -> _Function:
        """A function whose frame may rest: it only says that it was entered."""
        REGISTRY.passed.append(f"{self.file}: {self._qualname(node.name)} ({kind})")
        number = ast.Constant(len(REGISTRY.passed) - 1)
        first = 1 if ast.get_docstring(node, clean=False) is not None else 0
        said = self._statement(_call(PASS, number), node.body[min(first, len(node.body) - 1)])
        node.body.insert(first, said)
        return node

    def _qualname(self, name: str) -> str:
        return ".".join([*self.scope, name])

    def _rewrite_body(self, node: ast.FunctionDef, qualname: str) -> None:
        braces = tuple(dict.fromkeys(braces_in(node)))
        site = FunctionSite(
            file=self.file,
            line=node.lineno,
            qualname=qualname,
            name=node.name,
            internal=self.internal,
            braces=braces,
        )
        REGISTRY.functions.append(site)
        saved, self.owner = self.owner, len(REGISTRY.functions) - 1
        number = ast.Constant(self.owner)
        parameters = parameters_of(node.args)
        owner = own_parameter(node, parameters, in_class=self._in_class)
        seen = [
            self._statement(
                _call(SEE, self._site(p.arg, "argument", p, text_of(p.annotation)), _load(p.arg)), p
            )
            for p in parameters
            if p.arg != owner
        ]
        first = 1 if ast.get_docstring(node, clean=False) is not None else 0
        docstring, body = node.body[:first], node.body[first:]
        start = body[0] if body else node
        enter = _call(ENTER, number, _load(owner) if owner else ast.Constant(None))
        held = [self._statement(_call(HOLD, number, arguments_dict(parameters)), start)]
        # Only a forward can be an equal call of an earlier one; it says what it was given.
        begin = [self._statement(_call(BEGIN, *(_load(p.arg) for p in parameters)), start)]
        inner = [
            *seen,
            *(held if braces else []),
            *(begin if node.name == "forward" and owner else []),
            *self._block(body),
        ]
        leave = self._statement(_call(EXIT, number), start)
        guarded = ast.Try(body=inner, handlers=[], orelse=[], finalbody=[leave])
        node.body = [*docstring, self._statement(enter, start), ast.copy_location(guarded, start)]
        self.owner = saved

    # Statements.

    def _block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result

    def _site(self, name: str, kind: RecordKind, at: ast.AST, annotation: str = "") -> ast.expr:
        line = getattr(at, "lineno", 0)
        function = ".".join(part for part in self.scope if part != "<locals>")
        site = Site(
            file=self.file,
            line=line,
            function=function,
            name=name,
            kind=kind,
            internal=self.internal,
        )
        earlier = self.declared.get(name, "") if kind == "local" and not annotation else ""
        strict = name in self.predeclared
        binding = BoundSite(site, self.owner, annotation or earlier, bool(earlier) and not strict)
        REGISTRY.bindings.append(binding)
        if annotation and kind != "return":
            self.declared[name] = annotation
        return ast.Constant(len(REGISTRY.bindings) - 1)

    def _statement(self, value: ast.expr, at: ast.AST) -> ast.stmt:
        return _placed(ast.Expr(_placed(value, at)), at)

    def _marked(self, node: ast.stmt) -> list[ast.stmt]:
        return [node, self._statement(_call(MARK), node)]

    def _seen_after(self, names: Sequence[str], at: ast.stmt) -> list[ast.stmt]:
        """Report names that a statement has bound, as one event."""
        if not names:
            return []
        if len(names) == 1:
            return [
                self._statement(_call(SEE, self._site(names[0], "local", at), _load(names[0])), at)
            ]
        sites = ast.Tuple([self._site(name, "local", at) for name in names], ast.Load())
        values = ast.Tuple([_load(name) for name in names], ast.Load())
        return [self._statement(_call(SEE_ALL, sites, values), at)]

    def _seen_attribute(self, target: ast.expr, at: ast.stmt) -> list[ast.stmt]:
        """Report `name.attribute` after a statement has set it, without running a property."""
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)):
            return [self._statement(_call(MARK), at)]
        site = self._site(ast.unparse(target), "attribute", at)
        call = _call(SEE_ATTRIBUTE, site, _load(target.value.id), ast.Constant(target.attr))
        return [self._statement(call, at)]

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self._visit_value(node)
        if not self.in_function or holds_no_tensor(node.value):
            return node
        after: list[ast.stmt] = []
        for target in node.targets:
            match target:
                case ast.Name(id=name):
                    node.value = self._seen(name, "local", node.value, node)
                case ast.Attribute():
                    node.value = self._seen(ast.unparse(target), "attribute", node.value, node)
                case ast.Tuple() | ast.List() | ast.Starred():
                    after += self._seen_after(list(bound_names(target)), node)
                    for element in attributes_in(target):
                        after += self._seen_attribute(element, node)
                case _:
                    after.append(self._statement(_call(MARK), node))
        return [node, *after]

    def _seen(
        self, name: str, kind: RecordKind, value: ast.expr, at: ast.stmt, annotation: str = ""
    ) -> ast.expr:
        return _placed(_call(SEE, self._site(name, kind, at, annotation), value), value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None or not self.in_function:
            return node
        self._visit_value(node)
        assert node.value is not None  # noqa: S101 - mypy can't see through the visit
        kind: RecordKind = "local" if isinstance(node.target, ast.Name) else "attribute"
        name = ast.unparse(node.target)
        node.value = self._seen(name, kind, node.value, node, text_of(node.annotation))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        self._visit_value(node)
        if not self.in_function:
            return node
        if isinstance(node.target, ast.Name):
            return [node, *self._seen_after([node.target.id], node)]
        return [node, *self._seen_attribute(node.target, node)]

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        if self.in_function:
            site = self._site(node.target.id, "local", node)
            node.value = _placed(_call(SEE, site, node.value), node.value)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and self.in_function:
            node.value = self._seen("return", "return", node.value, node, self.returns)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not self.in_function or isinstance(node.value, ast.Constant):
            return node
        return self._marked(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._marked(node) if self.in_function and may_run(node.test) else node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._with_test(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._with_test(node)

    def _with_test(self, node: ast.If | ast.While) -> ast.AST:
        test = self.visit(node.test)
        node.test = _placed(_call(MARK, test), test) if self._runs(test) else test
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        return node

    def _runs(self, value: ast.expr) -> bool:
        return self.in_function and may_run(value)

    def visit_For(self, node: ast.For) -> ast.AST:
        items = self.visit(node.iter)
        node.iter = _placed(_call(MARK, items), items) if self._runs(items) else items
        bound = list(bound_names(node.target)) if self.in_function else []
        seen = self._seen_after(bound, node)
        node.body = [*seen, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in node.items:
            item.context_expr = self.visit(item.context_expr)
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
        bound = list(itertools.chain.from_iterable(bound_names(target) for target in targets))
        seen = self._seen_after(bound, node) if self.in_function else []
        node.body = [*seen, *self._block(node.body)]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if self.in_function and name in SHIELDED:
            node.func = _placed(_call(SHIELD, node.func), node.func)
        return node

    def _visit_value(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if node.value is not None:
            node.value = self.visit(node.value)


def _placed(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)
