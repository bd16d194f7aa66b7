"""Which bindings of a name reach each `return`: a small data flow over a function's statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, eq=False)
class Definition:
    """A binding of a name.

    Attributes:
        statement: Where; None for a parameter.
        value: The expression that it is bound to; None where that is no single one.
        env: What names stood for just before.
        in_place: Whether a tensor keeps its sizes there (``x += y``).
    """

    statement: ast.stmt | None = None
    value: ast.expr | None = None
    env: Env = field(default_factory=dict)
    in_place: bool = False


Env: TypeAlias = Mapping[str, tuple[Definition, ...]]
"""By name: the bindings that it may come from."""


def returns_of(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> list[tuple[ast.Return, Env]]:
    """The `return` statements of a function, each with what names may stand for there."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
    flow = _Flow()
    flow.block(node.body, {name: (Definition(),) for name in names})
    return flow.returns


@dataclass(slots=True)
class _Flow:
    returns: list[tuple[ast.Return, Env]] = field(default_factory=list)
    left: list[list[Env]] = field(default_factory=list)
    """By loop that is being read: what names stand for where it is left."""

    def block(self, body: Sequence[ast.stmt], env: Env | None) -> Env | None:
        """What names stand for after some statements; None where they are never left."""
        for statement in body:
            if env is None:
                return None
            env = self._after(statement, env)
        return env

    def _after(self, node: ast.stmt, env: Env) -> Env | None:
        match node:
            case ast.Return():
                self.returns.append((node, _with_walruses(node, env)))
                return None
            case ast.Raise():
                return None
            case ast.Break() | ast.Continue():
                if self.left:
                    self.left[-1].append(env)
                return None
            case ast.If(body=body, orelse=other):
                env = _with_walruses(node, env)
                return _joined(self.block(body, env), self.block(other, env))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, env)
            case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
                done = self.block(body, env)
                ends = [self.block(h.body, _joined(env, done)) for h in handlers]
                ends.append(self.block(other, done))
                return self.block(last, _joined(*ends))
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                targets = [one.optional_vars for one in items if one.optional_vars is not None]
                return self.block(body, _bound(env, node, targets, None))
            case ast.Match(cases=cases):
                ends = [self.block(case.body, _captured(case, node, env)) for case in cases]
                return _joined(env, *ends)
        return _simple(node, env)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> Env | None:
        self.left.append([])
        targets = [] if isinstance(node, ast.While) else [node.target]
        here = _with_walruses(node, env)
        for _ in range(2):  # what a turn binds reaches the next one
            count = len(self.returns)
            turn = self.block(node.body, _bound(here, node, targets, None))
            here = _joined(here, turn, *self.left[-1]) or here
            if _ == 0:
                del self.returns[count:]
        self.left.pop()
        return self.block(node.orelse, here)


def _simple(node: ast.stmt, env: Env) -> Env:
    env = _with_walruses(node, env)
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                env = _assigned(env, node, target, value)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            env = _assigned(env, node, target, value)
        case ast.AugAssign(target=ast.Name(id=name)):
            before = env.get(name, ())
            env = {**env, name: (*before, Definition(node, None, env, in_place=True))}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            env = {**env, name: (Definition(node, None, env),)}
    return env


def _assigned(env: Env, node: ast.stmt, target: ast.expr, value: ast.expr) -> Env:
    pairs = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple)
    if pairs and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
        new = dict(env)
        for one, part in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
            new.update(_bound(env, node, [one], part, only=True))
        return new
    return _bound(env, node, [target], value)


def _bound(
    env: Env,
    node: ast.stmt,
    targets: Sequence[ast.expr],
    value: ast.expr | None,
    *,
    only: bool = False,
) -> dict[str, tuple[Definition, ...]]:
    found = {} if only else dict(env)
    for target in targets:
        whole = value if isinstance(target, ast.Name) else None
        for name in _names(target):
            found[name] = (Definition(node, whole, env),)
    return found


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                yield from _names(item)
        case ast.Starred(value=value):
            yield from _names(value)


def _captured(case: ast.match_case, node: ast.stmt, env: Env) -> Env:
    found = dict(env)
    for inner in ast.walk(case.pattern):
        name = getattr(inner, "name", None) or getattr(inner, "rest", None)
        if isinstance(name, str):
            found[name] = (Definition(node, None, env),)
    return found


def _with_walruses(node: ast.stmt, env: Env) -> Env:
    """What ``:=`` in a statement itself binds, not in the statements inside it."""
    found: dict[str, tuple[Definition, ...]] | None = None
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            for inner in ast.walk(child):
                if isinstance(inner, ast.NamedExpr):
                    found = dict(env) if found is None else found
                    name = inner.target.id
                    found[name] = (*env.get(name, ()), Definition(node, inner.value, env))
    return env if found is None else found


def _joined(*envs: Env | None) -> Env | None:
    """What names may stand for after any of several ways; None where none goes on."""
    alive = [env for env in envs if env is not None]
    if not alive:
        return None
    if len(alive) == 1:
        return alive[0]
    names = dict.fromkeys(name for env in alive for name in env)
    return {
        name: tuple(dict.fromkeys(one for env in alive for one in env.get(name, ())))
        for name in names
    }
