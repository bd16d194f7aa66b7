"""The table for people, on a screen or in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from shapetrace.report import wording
from shapetrace.report.document import table_lines
from shapetrace.report.language.words import word
from shapetrace.report.layout.columns import columns, fitting
from shapetrace.report.layout.grid import GAP, Pen, Track, wrap
from shapetrace.report.layout.small import small_table
from shapetrace.report.training import training_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shapetrace.report.document import Line, Report
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.layout.columns import Column

_STYLES = {"named shape": "cyan", "FLOPs": "green", "meaning": "dim", "dtype": "dim"}
_RIGHT = {"bytes", "FLOPs"}


def render(report: Report, canvas: Canvas) -> str:
    """The report as text, fitted to the canvas; every number of it is in the JSON too."""
    pen = Pen(canvas.color)
    lines = [*_texts(wording.heading(report), "bold", pen, canvas)]
    lines += [*_body(report, pen, canvas), ""]
    for rows in training_tables(report):
        lines += [*small_table(rows, pen, canvas.width), ""]
    lines += _sums(report, pen, canvas)
    lines += _texts(wording.remarks(report), "bold", pen, canvas)
    lines += _texts(wording.alarms(report), "alarm", pen, canvas)
    return "".join(f"{line}\n" for line in lines)


def _texts(lines: Iterable[tuple[str, str]], style: str, pen: Pen, canvas: Canvas) -> Iterator[str]:
    for label, text in lines:
        yield from pen.labelled(label, text, style, canvas.width)


def _body(report: Report, pen: Pen, canvas: Canvas) -> Iterator[str]:
    lines = table_lines(report)
    if not lines:
        yield word("nothing was recorded", report.language)
        return
    kept, gone = fitting(columns(report, lines), canvas.width)
    yield from _table(kept, lines, pen, canvas)
    if gone:
        names = ", ".join(column.heading for column in gone)
        said = word("columns not shown at this width", report.language)
        yield from wrap(f"{said}: {names}", canvas.width)


def _table(kept: list[Column], lines: list[Line], pen: Pen, canvas: Canvas) -> Iterator[str]:
    tracks = [
        Track(width, column.key in _RIGHT, _STYLES.get(column.key, ""))
        for width, column in zip(_widths(kept, canvas.width), kept, strict=True)
    ]
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" if canvas.unicode else "-"
    yield from pen.row(tracks, [column.heading for column in kept], "bold")
    yield rule * (sum(track.width + GAP for track in tracks) - GAP)
    for place, line in enumerate(lines):
        style = "bold" if line.is_call else ""
        yield from pen.row(tracks, [column.cells[place] for column in kept], style)


def _widths(kept: list[Column], width: int | None) -> list[int]:
    """Each column's cells; the last one, or on a very narrow screen each, takes what is left."""
    natural = [column.width for column in kept]
    if width is None:
        return natural
    last = width - sum(natural[:-1]) - GAP * (len(natural) - 1)
    if last > 0:
        return [*natural[:-1], min(natural[-1], last)]
    share = max(1, (width + GAP) // len(natural) - GAP)
    return [min(share, own) for own in natural]


def _sums(report: Report, pen: Pen, canvas: Canvas) -> Iterator[str]:
    entries = wording.sums(report)
    labels = [f"  {entry.label}" if entry.is_part else entry.label for entry in entries]
    texts = [
        [label, entry.value, entry.nbytes, entry.share]
        for label, entry in zip(labels, entries, strict=True)
    ]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    if canvas.width is not None:
        left = canvas.width - sum(widths[1:]) - GAP * (len(widths) - 1)
        widths[0] = max(1, min(widths[0], left))
    tracks = [Track(width, right=place > 0) for place, width in enumerate(widths)]
    for entry, row in zip(entries, texts, strict=True):
        yield from pen.row(tracks, row, "" if entry.is_part else "bold")
