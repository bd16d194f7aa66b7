"""Which columns a table has, and which of them a narrow screen still has room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from shapetrace.report.language.words import word
from shapetrace.report.layout.grid import GAP
from shapetrace.report.wording import calls_meaning, cost, sizes_text
from shapetrace.units import format_bytes

if TYPE_CHECKING:
    from shapetrace.report.document import Line, Report

_NARROWEST_MEANING = 18
_DROPPED_FIRST = ("dtype", "bytes", "FLOPs", "sizes")
_FIRST = {"tensors": "tensor", "modules": "module", "ops": "operator"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key, its heading, a cell per line, and the cells that it takes."""

    key: str
    heading: str
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        """Cells of its widest text; a Chinese character takes two."""
        return max(cell_len(text) for text in (self.heading, *self.cells))


def columns(report: Report, lines: list[Line]) -> list[Column]:
    """Every column, with its text for each line."""
    names = [_FIRST[report.level], "named shape", "sizes", "dtype", "bytes", "FLOPs", "meaning"]
    texts = [_texts(report, line) for line in lines]
    return [
        Column(name, word(name, report.language), tuple(text[place] for text in texts))
        for place, name in enumerate(names)
    ]


def _texts(report: Report, line: Line) -> tuple[str, ...]:
    row = line.row
    label = "  " * line.depth + (line.label or row.name)
    meaning = row.meaning
    if line.is_call:
        meaning = calls_meaning(line)
        if line.failed:
            meaning = f"{meaning} ({word('failed', report.language)})".strip()
    if row.shape is None or (line.is_call and report.level != "modules"):
        return (label, "", "", "", "", cost(row), meaning)
    return (
        label,
        row.marked_dims,
        sizes_text(row),
        row.dtype,
        format_bytes(row.bytes),
        cost(row),
        meaning,
    )


def fitting(found: list[Column], width: int | None) -> tuple[list[Column], list[Column]]:
    """The columns that a screen has room for, and those that it has not.

    The meaning wraps as long as it has a readable width left; then it goes, then dtype,
    bytes, FLOPs and sizes, in that order. The name and the named shape always stay.

    Args:
        found: All columns.
        width: Cells in a line; None when nothing limits it.
    """
    if width is None:
        return found, []
    meaning = found[-1]
    rest = found[:-1]
    if _taken(rest) + GAP + min(_NARROWEST_MEANING, meaning.width) <= width:
        return found, []
    kept, gone = list(rest), [meaning]
    for key in _DROPPED_FIRST:
        if _taken(kept) <= width:
            break
        gone += [column for column in kept if column.key == key]
        kept = [column for column in kept if column.key != key]
    return kept, gone


def _taken(found: list[Column]) -> int:
    return sum(column.width for column in found) + GAP * (len(found) - 1)
