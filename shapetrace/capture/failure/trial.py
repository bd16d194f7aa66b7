"""Whether a fix would run: the failed expression with it, on tensors without values."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import FrameType

from torch import nn

from shapetrace.capture.failure.frozen_eval import (
    FrameNames,
    NotEvaluableError,
    evaluate_frozen,
    frame_names,
)
from shapetrace.capture.failure.weightless_module import NotOfTorch, made_anew
from shapetrace.explain.rules import Fix


def would_run(fix: Fix, node: ast.AST | None, frame: FrameType) -> bool:
    """Whether an expression that failed would run with a fix.

    Unless the fix is one of values, the expression itself must fail on weightless tensors
    too; else these tell nothing.

    Args:
        fix: What would be changed.
        node: The expression.
        frame: Where it failed.
    """
    if not isinstance(node, ast.expr):
        return False
    try:
        changed = _changed(ast.unparse(node), fix)
        instead = _instead(fix, frame)
    except (SyntaxError, NotEvaluableError, NotOfTorch):
        return False
    if not fix.values and not _fails(node, frame_names(frame)):
        return False
    try:
        evaluate_frozen(changed, replace(frame_names(frame), modules=instead))
    except NotEvaluableError:
        return False
    return True


def _fails(node: ast.AST, names: FrameNames) -> bool:
    """Whether torch itself refuses an expression."""
    try:
        evaluate_frozen(node, names)
    except NotEvaluableError as error:
        return error.__cause__ is not None
    return False


class _Replacing(ast.NodeTransformer):
    def __init__(self, sources: dict[str, ast.expr]) -> None:
        self._sources = sources
        self.done: set[str] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if text in self._sources:
            self.done.add(text)
            return self._sources[text]
        return self.generic_visit(node)


def _changed(expression: str, fix: Fix) -> ast.AST:
    """The expression with other parts; all of them have to be there."""
    sources = {old: ast.parse(new, mode="eval").body for old, new in fix.replaced}
    replacing = _Replacing(sources)
    found = replacing.visit(ast.parse(expression, mode="eval").body)
    if replacing.done != set(sources):
        raise NotEvaluableError
    return found


def _instead(fix: Fix, frame: FrameType) -> dict[int, nn.Module]:
    """The modules that a fix makes anew, by the identity of those that they replace."""
    made: dict[int, nn.Module] = {}
    for text, arguments in fix.remade:
        module = evaluate_frozen(ast.parse(text, mode="eval").body, frame_names(frame))
        if not isinstance(module, nn.Module):
            raise NotEvaluableError
        try:
            made[id(module)] = made_anew(module, dict(arguments))
        except NotOfTorch:
            raise
        except Exception as error:
            raise NotEvaluableError from error
    return made
