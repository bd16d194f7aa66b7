"""Which parts of an expression its sizes follow, found by trying other sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.frozen_eval import FrameNames, NotEvaluableError, evaluate_frozen
from shapetrace.capture.failure.weightless_module import NotOfTorch, made_anew

_SETTINGS = ("out_features", "out_channels", "embedding_dim", "hidden_size")
"""Arguments of torch's modules that fix a size of what they return."""


@dataclass(frozen=True, slots=True)
class SizeSource:
    """What a size follows.

    Attributes:
        node: A name or an attribute in the expression.
        axis: Which axis of it, or place in a tuple; None for a number.
        setting: For a module, the argument of its constructor.
    """

    node: ast.expr
    axis: int | None = None
    setting: str = ""


def sources(node: ast.expr, names: FrameNames, axis: int | None) -> list[SizeSource]:
    """The parts of an expression that one of its sizes follows.

    Args:
        node: The expression.
        names: What its names stand for.
        axis: Which size of its worth; None for a number.

    Returns:
        The parts that, made larger, change it; those with which torch refuses to run the
        expression are not among them.
    """
    size = _size(node, names, axis)
    if size is None:
        return []
    found: dict[tuple[str, int | None, str], SizeSource] = {}
    for leaf, value in _leaves(node, names):
        text = ast.unparse(leaf)
        for source, others in _varied(leaf, value, names):
            if any(_size(node, other, axis) not in (size, None) for other in others):
                found.setdefault((text, source.axis, source.setting), source)
    return list(found.values())


def _size(node: ast.expr, names: FrameNames, axis: int | None) -> int | None:
    try:
        value = evaluate_frozen(node, names)
    except NotEvaluableError:
        return None
    if axis is None:
        return value if isinstance(value, int) else None
    if isinstance(value, torch.Tensor):
        return value.shape[axis] if axis < value.dim() else None
    if isinstance(value, tuple) and axis < len(value) and isinstance(value[axis], int):
        return int(value[axis])
    return None


def _leaves(node: ast.AST, names: FrameNames) -> Iterator[tuple[ast.expr, Any]]:
    """The names and attributes in an expression that hold tensors, numbers or modules."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        value = _worth(node, names)
        whole = isinstance(value, torch.Tensor | int | nn.Module) or _are_sizes(value)
        plain = not isinstance(node, ast.Subscript) or isinstance(value, nn.Module)
        inner = getattr(node, "value", None)
        if whole and plain and not (inner is not None and _is_of_tensor(inner, names)):
            yield node, value
            return
    for child in ast.iter_child_nodes(node):
        yield from _leaves(child, names)


def _worth(node: ast.expr, names: FrameNames) -> Any:
    try:
        return evaluate_frozen(node, names)
    except NotEvaluableError:
        return None


def _is_of_tensor(node: ast.expr, names: FrameNames) -> bool:
    return isinstance(_worth(node, names), torch.Tensor)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(part) is int for part in value)


def _varied(
    leaf: ast.expr, value: Any, names: FrameNames
) -> Iterator[tuple[SizeSource, list[FrameNames]]]:
    """Each part of a leaf, and what the names stand for with that part larger."""
    text = ast.unparse(leaf)
    if isinstance(value, nn.Module):
        for setting in _SETTINGS:
            larger = _larger(value, setting)
            if larger is not None:
                modules = {**names.modules, id(value): larger}
                yield SizeSource(leaf, setting=setting), [replace(names, modules=modules)]
        return
    for axis, others in _with_larger(value):
        yield (
            SizeSource(leaf, axis),
            [replace(names, given={**names.given, text: other}) for other in others],
        )


def _with_larger(value: Any) -> Iterator[tuple[int | None, list[Any]]]:
    """A value with one of its sizes a little larger, and twice as large."""
    if isinstance(value, torch.Tensor):
        for axis, sizes in _one_larger(tuple(value.shape)):
            yield axis, [torch.empty(size, dtype=value.dtype, device="meta") for size in sizes]
    elif isinstance(value, tuple):
        yield from _one_larger(value)
    elif not isinstance(value, bool):
        yield None, [value + 1, value * 2]


def _one_larger(sizes: tuple[int, ...]) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
    for axis, size in enumerate(sizes):
        others = (size + 1, size * 2) if size > 0 else ()
        yield axis, [(*sizes[:axis], other, *sizes[axis + 1 :]) for other in others]


def _larger(module: nn.Module, setting: str) -> nn.Module | None:
    size = getattr(module, setting, None)
    if not isinstance(size, int):
        return None
    try:
        return made_anew(module, {setting: size + 1})
    except (NotOfTorch, ValueError, RuntimeError, TypeError):
        return None
