"""What does not go together in a statement that failed."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.records.trace import Operand


@dataclass(frozen=True, slots=True)
class Part:
    """One side of a clash: an axis of an operand (None for all of it)."""

    operand: Operand
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Clash:
    """What does not go together.

    Attributes:
        text: In words.
        parts: The axes whose sizes disagree.
        fix: What to do, where that can be said.
    """

    text: str
    parts: tuple[Part, ...] = ()
    fix: str = ""
