"""What a run costs: FLOPs by operator, statement and call, parameters, memory.

Formulas are pure functions of recorded shapes and live in one file per family; a new one
is a function with `@formula("aten.x")`. See `registry`. What only a training step or a
generation needs (`training`, `symbolic`) is imported from its own file.
"""

from shapetrace.cost.formulas import attention, contraction, convolution, fused, matmul, recurrent  # noqa: F401 - register
from shapetrace.cost.formulas.registry import ATTRIBUTES, FORMULAS, formula, operator_of
from shapetrace.cost.memory import Peak, innermost_scope, peak
from shapetrace.cost.parts import PARTS, ModelPart, part_of
from shapetrace.cost.prices import Prices, flops, price
from shapetrace.cost.summary import Summary, parts_of, summarise

__all__ = [
    "ATTRIBUTES",
    "FORMULAS",
    "PARTS",
    "ModelPart",
    "Peak",
    "Prices",
    "Summary",
    "flops",
    "formula",
    "innermost_scope",
    "operator_of",
    "part_of",
    "parts_of",
    "peak",
    "price",
    "summarise",
]
