"""The table for people, on a screen or in a pipe."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shapetrace.report import wording
from shapetrace.report.columns import columns, fitting
from shapetrace.report.document import table_lines
from shapetrace.report.reporter import Canvas, Reporter
from shapetrace.report.words import word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from shapetrace.report.columns import Column
    from shapetrace.report.document import Line, Report

_UNLIMITED = 1_000_000
_STYLES = {"named shape": "cyan", "FLOPs": "green", "meaning": "dim", "dtype": "dim"}
_RIGHT = {"bytes", "FLOPs"}


def render(report: Report, canvas: Canvas) -> str:
    """The report as text, fitted to the canvas; every number of it is in the JSON too."""
    parts: list[RenderableType] = [*_texts(wording.heading(report), "bold")]
    parts += [*_body(report, canvas), Text(""), _sums(report, canvas)]
    parts += _texts(wording.remarks(report), "bold")
    parts += _texts(wording.alarms(report), "bold red")
    return _drawn(parts, canvas)


def _drawn(parts: list[RenderableType], canvas: Canvas) -> str:
    file = io.StringIO()
    console = Console(
        file=file,
        width=canvas.width or _UNLIMITED,
        color_system="standard" if canvas.color else None,
        force_terminal=canvas.color,
        no_color=not canvas.color,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        console.print(part, overflow="fold")
    return "".join(line.rstrip() + "\n" for line in file.getvalue().splitlines())


def _texts(lines: Iterable[tuple[str, str]], style: str) -> list[RenderableType]:
    return [Text.assemble((label, style), f": {text}") for label, text in lines]


def _body(report: Report, canvas: Canvas) -> list[RenderableType]:
    lines = table_lines(report)
    if not lines:
        return [Text(word("nothing was recorded", report.language))]
    kept, gone = fitting(columns(report, lines), canvas.width)
    parts: list[RenderableType] = [_table(kept, lines, canvas)]
    if gone:
        names = ", ".join(column.heading for column in gone)
        parts.append(Text(f"{word('columns not shown at this width', report.language)}: {names}"))
    return parts


def _plain_table(canvas: Canvas, *, show_header: bool) -> Table:
    frame = box.SIMPLE_HEAD if canvas.unicode else box.ASCII2
    return Table(
        box=frame if show_header else None,
        show_header=show_header,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _table(kept: list[Column], lines: list[Line], canvas: Canvas) -> Table:
    table = _plain_table(canvas, show_header=True)
    for column in kept:
        table.add_column(
            column.heading,
            style=_STYLES.get(column.key, ""),
            justify="right" if column.key in _RIGHT else "left",
            no_wrap=column.key in _RIGHT,
            overflow="fold",
            min_width=None if column.key == "meaning" else min(column.width, 12),
        )
    for place, line in enumerate(lines):
        cells = [Text(column.cells[place]) for column in kept]
        table.add_row(*cells, style="bold" if line.is_call else "")
    return table


def _sums(report: Report, canvas: Canvas) -> Table:
    table = _plain_table(canvas, show_header=False)
    table.add_column(style="bold")
    for _ in range(3):
        table.add_column(justify="right", overflow="fold")
    for entry in wording.sums(report):
        label = Text(f"  {entry.label}", style="not bold") if entry.is_part else Text(entry.label)
        table.add_row(label, entry.value, entry.nbytes, entry.share)
    return table


TABLE = Reporter("table", (".txt",), folds=True, render=render)
