"""Values in a stopped frame, as operands with the names that they were written with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.frozen_eval import NotEvaluableError, evaluate_frozen, frame_names
from shapetrace.capture.failure.traceback import FramePlace
from shapetrace.capture.values.tensors_in import elements
from shapetrace.records.trace import Operand

StorageOf = Callable[[torch.Tensor], int | None]
UNKNOWN = object()
"""The worth of what cannot be worked out."""
WORKED_OUT = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.UnaryOp)
"""Expressions that make their value."""


class FrameReader:
    """Reads one frame.

    Attributes:
        place: The frame, with the statement that failed.
        storage_of: The number of a tensor's block.
    """

    def __init__(self, place: FramePlace, storage_of: StorageOf) -> None:
        """Take the frame.

        Args:
            place: The frame.
            storage_of: The number of a tensor's block; None for one that was not met.
        """
        self.place = place
        self.storage_of = storage_of

    def worth(self, node: ast.AST) -> Any:
        """What an expression is worth; `UNKNOWN` where that cannot be said."""
        try:
            return evaluate_frozen(node, frame_names(self.place.frame))
        except NotEvaluableError:
            return UNKNOWN

    def written(self, node: ast.expr, role: str, given: Any = None) -> Iterator[Operand]:
        """The operand or operands that an expression stands for."""
        if isinstance(node, ast.Starred):
            node = node.value
        if isinstance(node, ast.Tuple | ast.List):
            for element in node.elts:
                yield from self.written(element, role)
            return
        value = self.worth(node)
        stored = isinstance(node, ast.Name | ast.Attribute)
        if not stored and isinstance(given, torch.Tensor):
            value, stored = given, True  # the value itself, where ours is worked out again
        text = ast.unparse(node)
        if value is UNKNOWN or isinstance(value, nn.Module):
            if isinstance(node, WORKED_OUT) and not _is_constant(node):
                yield Operand(text, role)
        elif value is None or isinstance(
            value, int | float | str | slice | torch.dtype | torch.Size
        ):
            shown = str(list(value)) if isinstance(value, torch.Size) else repr(value)
            yield Operand(text, role, value=shown)
        else:
            for path, tensor in elements(value):
                found = self.tensor(text + path, role, tensor)
                yield found if stored else replace(found, device="")

    def tensor(
        self, text: str, role: str, tensor: torch.Tensor, made: tuple[str, int] = ("", 0)
    ) -> Operand:
        """A tensor as an operand; `made` is where the module that holds it was."""
        file, line = made
        return Operand(
            text=text,
            role=role,
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            device=str(tensor.device),
            storage=self.storage_of(tensor),
            value=_range(tensor),
            file=file,
            line=line,
        )


def _is_constant(node: ast.expr) -> bool:
    """Whether an expression is made of constants alone, as ``float("inf")`` is."""
    return (
        isinstance(node, ast.Call)
        and not any(
            isinstance(part, ast.Name | ast.Attribute)
            for argument in (*node.args, *node.keywords)
            for part in ast.walk(argument)
        )
        and isinstance(node.func, ast.Name)
        and node.func.id == "float"
    )


def hidden(role: str, value: int) -> Operand:
    """A value that rules ask for, and that need not be told."""
    return Operand(str(value), role, value=str(value))


def _range(tensor: torch.Tensor) -> str:
    """The span of an integer tensor's values, which may be indices; else empty."""
    if tensor.dtype not in (torch.int64, torch.int32) or tensor.device.type != "cpu":
        return ""
    try:
        low, high = torch.aminmax(tensor.detach())
    except (RuntimeError, NotImplementedError):  # empty, fake or of a subclass's own mind
        return ""
    return f"{int(low)} to {int(high)}" if low != high else f"{int(low)}"
