"""Where FLOP formulas are kept: one pure function per operator, or per family of them.

A formula takes an `OpRecord` and returns its FLOPs, one multiply-add being 2. It looks
at shapes and recorded attributes only, so it needs no torch. It returns None where the
shapes alone do not decide the number (packed sequences of unknown lengths): the operator
is then listed as not counted, never counted as zero. A complex multiply-add is one
multiply-add here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeVar

from shapetrace.records.trace import OpRecord, Shape

Formula = Callable[[OpRecord], int | None]
F = TypeVar("F", bound=Formula)
AttributeValue = int | float | bool | str | Shape

FORMULAS: dict[str, Formula] = {}
"""Formulas by operator, without its overload: ``aten.addmm``."""

ATTRIBUTES: dict[str, tuple[str, ...]] = {}
"""The schema arguments that an operator's formula reads, by operator: what `capture` must
record beside the shapes. Lists of integers or booleans are recorded as tuples of ints."""


class MissingShapeError(ValueError):
    """A tensor argument that a formula needs was not recorded."""


def formula(*operators: str, attributes: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register a function as the price of some operators.

    Args:
        operators: Names without overload: ``aten.mm``. In-place twins (``aten.addmm_``)
            are found under the same name.
        attributes: The operator's schema arguments, other than tensors, that it reads.

    Raises:
        ValueError: One of the operators has a formula already.
    """

    def register(function: F) -> F:
        for operator in operators:
            if operator in FORMULAS:
                raise ValueError(f"{operator} has a formula already: {FORMULAS[operator].__name__}")
            FORMULAS[operator] = function
            if attributes:
                ATTRIBUTES[operator] = attributes
        return function

    return register


def operator_of(name: str) -> str:
    """An operator's name without its overload: ``aten.addmm`` of ``aten.addmm.default``."""
    parts = name.split(".")
    return ".".join(parts[:2])


def input_shape(op: OpRecord, position: int) -> Shape:
    """Shape of the tensor argument at a position.

    Raises:
        MissingShapeError: There is no such argument, or it was not given.
    """
    shape = op.inputs[position] if position < len(op.inputs) else None
    if shape is None:
        raise MissingShapeError(f"{op.name} has no tensor argument {position}")
    return shape


def output_shape(op: OpRecord, position: int = 0) -> Shape:
    """Shape of the result at a position.

    Raises:
        MissingShapeError: The operator has no such result.
    """
    if position >= len(op.outputs):
        raise MissingShapeError(f"{op.name} has no result {position}")
    return op.outputs[position]


def attribute(op: OpRecord, name: str, default: AttributeValue | None = None) -> AttributeValue:
    """The value of a recorded attribute.

    Args:
        op: The operator.
        name: The schema argument.
        default: The schema's default, which torch does not pass on.

    Raises:
        MissingShapeError: It was not recorded and has no default.
    """
    for key, value in op.attributes:
        if key == name:
            return value
    if default is None:
        raise MissingShapeError(f"{op.name} was recorded without {name}")
    return default


def integers(op: OpRecord, name: str) -> tuple[int, ...]:
    """The value of an attribute that is a list of integers or booleans.

    Raises:
        MissingShapeError: It was not recorded, or is not a list.
    """
    value = attribute(op, name)
    if not isinstance(value, tuple):
        raise MissingShapeError(f"{op.name} has {name}={value!r}, not a list")
    return value


def multiply_adds(*factors: int) -> int:
    """FLOPs of a product of loop lengths with one multiply-add in the middle."""
    return 2 * prod(factors)
