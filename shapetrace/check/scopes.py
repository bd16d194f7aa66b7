"""Whose names a declared axis shares: those of its call, or of the object that it is a field of."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from shapetrace.records.trace import TensorRecord

Whose: TypeAlias = tuple[int, ...] | tuple[int, int, int, str]


def whose_names(record: TensorRecord) -> Whose:
    """The scope of a value's declared names, as jaxtyping has it.

    A call's parameters and return share one; each object with annotated fields (a dataclass)
    has one of its own, which no function binds.
    """
    owner, dot, _ = _outside_brackets(record.element)
    return (record.scope, record.site, record.at, owner) if dot else (record.scope,)


def _outside_brackets(element: str) -> tuple[str, str, str]:
    """An element parted at its last field: ``[0].past[1]`` at ``.past``."""
    depth, place = 0, -1
    for number, letter in enumerate(element):
        depth += (letter == "[") - (letter == "]")
        if letter == "." and depth == 0:
            place = number
    return (element[:place], ".", element[place + 1 :]) if place >= 0 else (element, "", "")
