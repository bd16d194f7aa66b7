"""The operands of a clash, each with where its clashing sizes come from."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from shapetrace.capture.failure.lineage import Lineage
from shapetrace.explain.rules import Clash
from shapetrace.records.trace import Failure, Operand, Origin

_ARGUMENTS = {
    ("Linear", "weight", 1): "in_features",
    ("Linear", "weight", 0): "out_features",
    ("Conv", "weight", 1): "in_channels",
    ("Embedding", "weight", 0): "num_embeddings",
    ("LayerNorm", "weight", 0): "normalized_shape",
    ("RMSNorm", "weight", 0): "normalized_shape",
    ("BatchNorm", "weight", 0): "num_features",
    ("GroupNorm", "weight", 0): "num_channels",
    ("LSTM", "weight_ih_l0", 1): "input_size",
    ("GRU", "weight_ih_l0", 1): "input_size",
    ("RNN", "weight_ih_l0", 1): "input_size",
    ("MultiheadAttention", "in_proj_weight", 1): "embed_dim",
}
"""By kind of module, parameter and axis: the argument of its constructor that is its size."""


def with_origins(failure: Failure, clashes: Sequence[Clash], lineage: Lineage) -> Failure:
    """A failure whose clashing operands know where their sizes come from.

    Args:
        failure: The failure.
        clashes: What clashes in it.
        lineage: Follows sizes in the function that failed.
    """
    asked: dict[Operand, set[int | None]] = {}
    for clash in clashes:
        for part in clash.parts:
            if part.axis is not None or part.operand.shape is None:
                asked.setdefault(part.operand, set()).add(part.axis)
    told = tuple(
        replace(operand, origins=_origins(operand, asked[operand], failure, lineage))
        if operand in asked
        else operand
        for operand in failure.operands
    )
    return replace(failure, operands=told)


def _origins(
    operand: Operand, axes: set[int | None], failure: Failure, lineage: Lineage
) -> tuple[tuple[Origin, ...], ...]:
    try:
        node = ast.parse(operand.text, mode="eval").body
    except SyntaxError:
        return ()
    if operand.shape is None:
        return (lineage.of(node, None),)
    return tuple(
        _origin(operand, node, axis, failure, lineage) if axis in axes else ()
        for axis in range(len(operand.shape))
    )


def _origin(
    operand: Operand, node: ast.expr, axis: int, failure: Failure, lineage: Lineage
) -> tuple[Origin, ...]:
    if operand.line and isinstance(node, ast.Attribute):
        kind = re.sub(r"\dd$", "", failure.operation)
        return lineage.setting(node.value, _ARGUMENTS.get((kind, operand.role, axis), ""))
    return lineage.of(node, axis)
