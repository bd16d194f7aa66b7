"""What does not go together in a statement that failed."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.records.trace import Operand, Shape


@dataclass(frozen=True, slots=True)
class ClashSide:
    """One side of a clash: an axis of an operand (None for all of it)."""

    operand: Operand
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """What to do, and how to see whether it would run.

    Attributes:
        text: In words.
        replaced: Parts of the failed expression, and the source that would stand there.
        remade: Modules that would be made anew: each with the arguments that change.
        values: Whether the failure lies in values, which weightless tensors have not.
    """

    text: str
    replaced: tuple[tuple[str, str], ...] = ()
    remade: tuple[tuple[str, tuple[tuple[str, int | bool | Shape], ...]], ...] = ()
    values: bool = False


@dataclass(frozen=True, slots=True)
class Clash:
    """What does not go together.

    Attributes:
        text: In words.
        parts: The axes whose sizes disagree.
        fixes: What may help, likeliest first; of use once one was seen to run.
        advice: What to do where the rule alone says it, and there is nothing to try.
    """

    text: str
    parts: tuple[ClashSide, ...] = ()
    fixes: tuple[Fix, ...] = ()
    advice: str = ""


def operand_sizes(operand: Operand) -> Shape:
    """An operand's sizes; of one without, none."""
    return operand.shape or ()


def axis_is(operand: Operand, axis: int) -> str:
    """An axis and its size, in words."""
    axis %= len(operand_sizes(operand))
    return f"axis {axis} of `{operand.text}` is {operand_sizes(operand)[axis]}"


def pair(first: Operand, i: int, second: Operand, j: int, *fixes: Fix, note: str = "") -> Clash:
    """Two axes that should be equal; negative axes are counted from the end."""
    i, j = i % len(operand_sizes(first)), j % len(operand_sizes(second))
    text = f"{axis_is(first, i)}, {axis_is(second, j)}{note}"
    return Clash(text, (ClashSide(first, i), ClashSide(second, j)), fixes)


def axes(count: int) -> str:
    """A number of axes, in words."""
    return f"{count} axis" if count == 1 else f"{count} axes"


def ranks(operand: Operand, wanted: str, *fixes: Fix) -> Clash:
    """An operand with too many or too few axes."""
    text = f"`{operand.text}` has {axes(len(operand_sizes(operand)))}, {wanted}"
    return Clash(text, (ClashSide(operand),), fixes)


def replace(operand: Operand, source: str, text: str = "") -> Fix:
    """Another source in the place of an operand."""
    return Fix(text or f"use `{source}`", ((operand.text, source),))


def remake_module(module: str, **arguments: int | bool | Shape) -> Fix:
    """A module with other arguments of its constructor."""
    shown = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return Fix(f"make `{module}` with {shown}", remade=((module, tuple(arguments.items())),))
