"""The list of formats, and which one is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError, did_you_mean
from shapetrace.report.reporter import Reporter

if TYPE_CHECKING:
    from pathlib import Path

TABLE = Reporter("table", (".txt",), folds=True, module="as_table")
JSON = Reporter("json", (".json",), folds=False, module="as_json")
CSV = Reporter("csv", (".csv",), folds=False, module="as_csv")
MARKDOWN = Reporter("md", (".md", ".markdown"), folds=True, module="as_markdown")
REPORTERS: tuple[Reporter, ...] = (TABLE, JSON, CSV, MARKDOWN)
"""Every format; a new one is a file with a `render` beside this one, and its line here."""


def choose(name: str | None, output: Path | None) -> Reporter:
    """The format that is asked for by name, else by the output file's suffix, else the table.

    Raises:
        ShapetraceError: For a name or a suffix that no format has.
    """
    if name is not None:
        return _named(name)
    if output is None:
        return TABLE
    suffix = output.suffix.lower()
    for reporter in REPORTERS:
        if suffix in reporter.suffixes:
            return reporter
    known = ", ".join(suffix for reporter in REPORTERS for suffix in reporter.suffixes)
    raise ShapetraceError(
        f"cannot tell the format from the name {output.name!r}: use {known}, or give --format"
    )


def _named(name: str) -> Reporter:
    for reporter in REPORTERS:
        if reporter.name == name:
            return reporter
    names = [reporter.name for reporter in REPORTERS]
    raise ShapetraceError(f"unknown format {name!r}: {did_you_mean(name, names)}")
