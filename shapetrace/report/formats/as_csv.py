"""CSV, for spreadsheets: one line per record, numbers unrounded."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from shapetrace.report.document import counted_rows

if TYPE_CHECKING:
    from shapetrace.report.document import Report
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.rows import Row

ROW_COLUMNS = (
    "path",
    "name",
    "kind",
    "dims",
    "shape",
    "dtype",
    "bytes",
    "flops",
    "flops_complete",
    "meaning",
    "file",
    "line",
    "repeats",
)


def render(report: Report, _canvas: Canvas) -> str:
    """A heading line and a line per record; sizes are separated by spaces."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ROW_COLUMNS)
    writer.writerows(_cells(row, times) for row, times in counted_rows(report))
    return text.getvalue()


def _cells(row: Row, times: int) -> tuple[str | int, ...]:
    return (
        row.path,
        row.name,
        row.kind,
        row.dims,
        " ".join(map(str, row.shape or ())),
        row.dtype,
        row.bytes,
        row.flops,
        str(row.complete).lower(),
        row.meaning,
        row.file,
        row.line,
        times,
    )
