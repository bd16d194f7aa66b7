"""What to note of each operator, worked out once from its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OperatorBase

from shapetrace.cost import ATTRIBUTES, FORMULAS
from shapetrace.records.trace import StorageKind

Shapes = tuple[tuple[int, ...] | None, ...]
Attributes = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to note of an operator's call, worked out once from its schema.

    Attributes:
        operator: What it is for; held, so that its identity stays its own.
        name: ``aten.addmm.default``.
        tensors: Position, name and whether it is a list, of each tensor argument; None for
            an operator without a schema, whose every tensor counts.
        attributes: Position, name and default of each argument that a formula needs.
        products: Whether it multiplies matrices: of a sparse one the shape is not the cost.
        looks: Whether more than tensors' shapes is to be noted.
        by_value: Whether its result's shape or what runs after may hang on tensors' values.
        result: What a block is taken to hold that its result lies in and nothing made before:
            that of a view was there before the run.
    """

    operator: Any
    name: str
    tensors: tuple[tuple[int, str, bool], ...] | None
    attributes: tuple[tuple[int, str, Any], ...]
    by_value: bool = False
    products: bool = False
    looks: bool = False
    result: StorageKind = "activation"


PLANS: list[Plan] = []
"""All plans, by number."""

_NUMBERS: dict[int, int] = {}
"""Numbers of plans by the operator's identity: operators live as long as the process."""


def plan_number(operator: Any) -> int:
    """The number of the plan for an operator overload, or for anything else that is called."""
    number = _NUMBERS.get(id(operator))
    if number is None:
        number = _NUMBERS[id(operator)] = len(PLANS)
        PLANS.append(_planned(operator))
    return number


def _planned(operator: Any) -> Plan:
    schema = getattr(operator, "_schema", None)
    if schema is None:  # flex_attention and its like take functions too
        name = getattr(operator, "__name__", str(operator))
        higher = isinstance(operator, OperatorBase) or name == "flex_attention"
        return Plan(operator, f"{'higher_order' if higher else 'torch'}.{name}", None, ())
    tensors, attributes = [], []
    packet = str(operator.overloadpacket)
    wanted = ATTRIBUTES.get(packet, ())
    for position, argument in enumerate(schema.arguments):
        kind = str(argument.type)
        if "Tensor" in kind:
            tensors.append((position, argument.name, kind.startswith("List")))
        elif argument.name in wanted:
            default = argument.default_value if argument.has_default_value() else None
            attributes.append((position, argument.name, default))
    return Plan(
        operator,
        str(operator),
        tuple(tensors),
        tuple(attributes),
        by_value=_is_by_value(operator),
        products=packet in FORMULAS,
        looks=bool(attributes) or packet in FORMULAS,
        result="input" if _is_view(operator) else "activation",
    )


def _is_view(operator: Any) -> bool:
    """Whether its result lies in an argument's memory; `lift_fresh` only looks as if."""
    shares = any(result.alias_info is not None for result in operator._schema.returns)  # noqa: SLF001
    return shares and "lift_fresh" not in str(operator)


def _is_by_value(operator: Any) -> bool:
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return any(tag in operator.tags for tag in tags)
