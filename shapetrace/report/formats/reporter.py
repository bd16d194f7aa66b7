"""What a format is to the rest of the program."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
class Reporter:
    """A format.

    Attributes:
        name: As given to ``--format``.
        suffixes: Of files in it, with the dot.
        folds: Whether equal layers are folded unless the user says otherwise.
        module: Where its `render` is, imported when it is first used.
    """

    name: str
    suffixes: tuple[str, ...]
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
