"""Markdown, for documents: the table for people without the limits of a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.report import wording
from shapetrace.report.document import table_lines
from shapetrace.report.language.words import word
from shapetrace.report.layout.columns import columns
from shapetrace.report.training import training_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapetrace.report.document import Line, Report
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.layout.columns import Column
    from shapetrace.report.layout.small import SmallTable

_CODE = {"tensor", "module", "operator", "named shape"}


def render(report: Report, _canvas: Canvas) -> str:
    """The report as GitHub-flavoured Markdown."""
    blocks = [
        listing(wording.heading(report)),
        _body(report),
        *map(small, training_tables(report)),
        _sums(report),
        listing(wording.remarks(report) + wording.alarms(report)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def listing(lines: Sequence[tuple[str, str]]) -> str:
    """Labelled lines as a list."""
    return "\n".join(f"- **{safe(label)}**: {safe(text)}" for label, text in lines)


def _body(report: Report) -> str:
    lines = table_lines(report)
    if not lines:
        return word("nothing was recorded", report.language)
    found = columns(report, lines)
    rights = [column.key in {"bytes", "FLOPs"} for column in found]
    texts = [[_cell(column, line, place) for column in found] for place, line in enumerate(lines)]
    return _grid([column.heading for column in found], rights, texts)


def _cell(column: Column, line: Line, place: int) -> str:
    text = column.cells[place]
    if column.key not in _CODE or not text.strip():
        return safe(text)
    indent = "&nbsp;" * (2 * line.depth) if column.key != "named shape" else ""
    code = f"{indent}`{text.strip().replace('|', chr(92) + '|')}`"
    return f"**{code}**" if line.is_call and column.key != "named shape" else code


def small(rows: SmallTable) -> str:
    """A small table."""
    heading, *cells = [[safe(cell) for cell in row] for row in rows.cells]
    return _grid(heading, [place in rows.right for place in range(len(heading))], cells)


def _sums(report: Report) -> str:
    total = word("total", report.language)
    heads = [total, "", word("bytes", report.language), word("share", report.language)]
    texts = []
    for entry in wording.sums(report):
        label = f"&nbsp;&nbsp;{safe(entry.label)}" if entry.is_part else f"**{safe(entry.label)}**"
        texts.append([label, entry.value, entry.nbytes, entry.share])
    return _grid(heads, [False, True, True, True], texts)


def _grid(heads: Sequence[str], rights: Sequence[bool], texts: Sequence[Sequence[str]]) -> str:
    rules = ["---:" if right else "---" for right in rights]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *texts))


def safe(text: str) -> str:
    """Text that Markdown shows as it is."""
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", "<br>")
