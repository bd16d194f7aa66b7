"""Small tables beside the large one: a heading, a few rows, the last column flexible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from shapetrace.report.layout.grid import GAP, Track

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.report.layout.grid import Pen

NARROWEST = 8
"""Cells that a column keeps on the narrowest screen."""


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A small table.

    Attributes:
        cells: Its rows, the first of which is the heading.
        right: Columns that stand at the right.
    """

    cells: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()


def small_table(rows: SmallTable, pen: Pen, width: int | None) -> Iterator[str]:
    """The table's lines.

    The last column takes what is left of the screen; where that is nothing, the widest
    columns give way, and their texts take more lines.

    Args:
        rows: The table.
        pen: Writes it.
        width: Cells in a line; None when nothing limits it.
    """
    widths = _widths(rows, width)
    tracks = [Track(size, right=place in rows.right) for place, size in enumerate(widths)]
    for number, cells in enumerate(rows.cells):
        yield from pen.row(tracks, cells, "" if number else "bold")


def _widths(rows: SmallTable, width: int | None) -> list[int]:
    widths = [max(map(cell_len, column)) for column in zip(*rows.cells, strict=True)]
    if width is None:
        return widths
    gaps = GAP * (len(widths) - 1)
    widths[-1] = max(NARROWEST, min(widths[-1], width - sum(widths[:-1]) - gaps))
    while sum(widths) + gaps > width and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths
