"""What a format is to the rest of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
        render: The report's text in it.
    """

    name: str
    suffixes: tuple[str, ...]
    folds: bool
    render: Callable[[Report, Canvas], str]
