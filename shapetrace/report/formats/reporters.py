"""What a format is to the rest of the program, the list of formats, and which one is meant."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from shapetrace.errors import ShapetraceError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from shapetrace.report.document import Report


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where a report is shown.

    Attributes:
        width: Cells in a line; None when nothing limits it (a file, a pipe).
        color: Whether colours are wanted.
        unicode: Whether more than ASCII can be shown in rules and marks.
    """

    width: int | None = None
    color: bool = False
    unicode: bool = True


@dataclass(frozen=True, slots=True)
class ResultFormat:
    """A way to show a result.

    Attributes:
        name: As given to ``--format``.
        suffixes: Of files in it, with the dot.
    """

    name: str
    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reporter(ResultFormat):
    """A format of a trace's report.

    Attributes:
        folds: Whether equal layers are folded unless the user says otherwise.
        module: The file here with its `render`, imported when it is first used.
    """

    folds: bool
    module: str

    def render(self, report: Report, canvas: Canvas) -> str:
        """The report's text in this format.

        Args:
            report: What is shown.
            canvas: What it is fitted to; formats for programs pay it no heed.
        """
        text: str = import_module(f"shapetrace.report.formats.{self.module}").render(report, canvas)
        return text


TABLE = Reporter("table", (".txt",), folds=True, module="as_table")
JSON = Reporter("json", (".json",), folds=False, module="as_json")
CSV = Reporter("csv", (".csv",), folds=False, module="as_csv")
MARKDOWN = Reporter("md", (".md", ".markdown"), folds=True, module="as_markdown")
REPORTERS: tuple[Reporter, ...] = (TABLE, JSON, CSV, MARKDOWN)
"""Every format of a trace; a new one is a file with a `render` beside this one, and its line here.

`--format`, its help, its errors and the tests follow from the list.
"""

GENERATION: tuple[Reporter, ...] = (TABLE, JSON, CSV, MARKDOWN)
ATTENTION: tuple[Reporter, ...] = (TABLE, JSON, CSV)
FINDINGS: tuple[ResultFormat, ...] = (
    ResultFormat("full", (".txt",)),
    ResultFormat("concise", ()),
    JSON,
    ResultFormat("github", ()),
)
"""What other results can be shown in, by files of their own; the first is for a screen."""

_Form = TypeVar("_Form", bound=ResultFormat)


def choose_format(name: str | None, output: Path | None, offered: Sequence[_Form]) -> _Form:
    """The format that is asked for by name, else by the output file's suffix, else the first.

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
        return offered[0]
    suffix = output.suffix.lower()
    for form in offered:
        if suffix in form.suffixes:
            return form
    known = ", ".join(suffix for form in offered for suffix in form.suffixes)
    raise ShapetraceError(
        f"cannot tell the format from the name {output.name!r}: use {known}, or give --format"
    )


def _named(name: str, offered: Sequence[_Form]) -> _Form:
    for form in offered:
        if form.name == name:
            return form
    names = [form.name for form in offered]
    raise ShapetraceError(f"unknown format {name!r}: {did_you_mean(name, names)}")
