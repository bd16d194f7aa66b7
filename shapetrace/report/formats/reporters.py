"""The list of formats, and which one is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError, did_you_mean
from shapetrace.report.formats.reporter import Reporter

if TYPE_CHECKING:
    from pathlib import Path

TABLE = Reporter("table", (".txt",), folds=True, module="as_table")
JSON = Reporter("json", (".json",), folds=False, module="as_json")
CSV = Reporter("csv", (".csv",), folds=False, module="as_csv")
MARKDOWN = Reporter("md", (".md", ".markdown"), folds=True, module="as_markdown")
REPORTERS: tuple[Reporter, ...] = (TABLE, JSON, CSV, MARKDOWN)
"""Every format; a new one is a file with a `render` beside this one, and its line here."""


def choose(
    name: str | None, output: Path | None, offered: tuple[Reporter, ...] = REPORTERS
) -> Reporter:
    """The format that is asked for by name, else by the output file's suffix, else the table.

    Args:
        name: The format's name, if one was given.
        output: The file, if the result goes to one.
        offered: The formats that this result can be shown in.

    Raises:
        ShapetraceError: For a name or a suffix that no offered format has.
    """
    if name is not None:
        return _named(name, offered)
    if output is None:
        return TABLE
    suffix = output.suffix.lower()
    for reporter in offered:
        if suffix in reporter.suffixes:
            return reporter
    known = ", ".join(suffix for reporter in offered for suffix in reporter.suffixes)
    raise ShapetraceError(
        f"cannot tell the format from the name {output.name!r}: use {known}, or give --format"
    )


def _named(name: str, offered: tuple[Reporter, ...]) -> Reporter:
    for reporter in offered:
        if reporter.name == name:
            return reporter
    names = [reporter.name for reporter in offered]
    raise ShapetraceError(f"unknown format {name!r}: {did_you_mean(name, names)}")
