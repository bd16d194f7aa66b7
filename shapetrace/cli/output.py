"""Where results go: stdout or a file; everything else goes to stderr."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from shapetrace.cli.interrupt import CTRL_C
from shapetrace.errors import ShapetraceError
from shapetrace.report import REPORTERS, Canvas, Language, choose_format
from shapetrace.writing import check_place, resolved, write_whole

if TYPE_CHECKING:
    from shapetrace.records.trace import Trace
    from shapetrace.report.rows import Level


@dataclass(frozen=True, slots=True)
class Style:
    """How a trace is to be shown, as the options say.

    Attributes:
        level: What a row is.
        layers: ``fold``, ``all``, or None for the format's own way.
        language: Of headings and meanings.
        format: The format's name; None to go by the output's suffix.
        output: The file; None for stdout.
    """

    level: "Level"
    layers: str | None
    language: Language
    format: str | None
    output: Path | None

    def __post_init__(self) -> None:
        """Find a format that is not there before anything runs.

        Raises:
            ShapetraceError: For an unknown format or suffix.
        """
        choose_format(self.format, self.output, REPORTERS)


def show_trace(trace: "Trace", style: Style) -> int:
    """Show a trace; the exit code: 1 when an annotation did not hold or the run failed."""
    from shapetrace.report.document import build_report  # noqa: PLC0415 - slow, and help needs none

    reporter = choose_format(style.format, style.output, REPORTERS)
    folded = reporter.folds if style.layers is None else style.layers == "fold"
    report = build_report(trace, style.level, style.language, folded=folded)
    write(reporter.render(report, canvas(style.output)), style.output)
    return 1 if report.mismatches or trace.failure is not None else 0


def tell(text: str) -> None:
    """Write to stderr, where there is one and somebody still reads it."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(2)


def silence(descriptor: int) -> None:
    """Keep Python from failing again when it flushes a stream at exit whose reader is gone."""
    hole = os.open(os.devnull, os.O_WRONLY)
    os.dup2(hole, descriptor)
    os.close(hole)


def note(text: str) -> None:
    """Say on stderr what is going on, when someone is looking; stop if Ctrl-C was pressed."""
    CTRL_C.check()
    if sys.stderr is not None and sys.stderr.isatty():
        tell(f"{text}\n")


def check_outputs(*paths: Path | None, reads: Sequence[Path | str | None] = ()) -> None:
    """Refuse files that cannot be written, before a long run and not after it.

    Args:
        paths: What will be written.
        reads: What the command reads: a result never takes the place of what it came from.

    Raises:
        ShapetraceError: Naming the file and what is in the way.
    """
    given = [path for path in paths if path is not None]
    for path in given:
        _check_one(path)
        if any(_is_same(path, other) for other in reads if other is not None):
            _refuse(path, "this command reads it")
    if len({resolved(path) for path in given}) < len(given):
        _refuse(given[-1], "the other result goes there too")


def _is_same(path: Path, other: Path | str) -> bool:
    try:
        return path.is_file() and path.samefile(other)
    except (OSError, ValueError):  # the other is a preset's name, say
        return False


def _check_one(path: Path) -> None:
    try:
        check_place(path)
    except OSError as error:
        _refuse(path, error.strerror or str(error))


def write(text: str, output: Path | None) -> None:
    """Write a result to a file, whole or not at all, or to stdout.

    Raises:
        ShapetraceError: If that fails, or whoever reads stdout has stopped reading.
    """
    if output is None:
        _write_stdout(text)
        return
    try:
        write_whole(output, text.encode())
    except OSError as error:
        _refuse(output, error.strerror or str(error))


def _write_stdout(text: str) -> None:
    if sys.stdout is None:
        raise ShapetraceError("standard output is closed; give a file with -o")
    try:
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        silence(sys.stdout.fileno())
        reason = "its reader closed it" if isinstance(error, BrokenPipeError) else error.strerror
        raise ShapetraceError(
            f"cannot write all of the result to standard output: {reason}"
        ) from error


def write_bytes(content: bytes) -> None:
    """Write to stdout what may hold text of any encoding, to the byte.

    Raises:
        ShapetraceError: If that fails, or whoever reads stdout has stopped reading.
    """
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        _write_stdout(content.decode("utf-8", "replace"))
        return
    try:
        sys.stdout.flush()
        buffer.write(content)
        buffer.flush()
    except OSError as error:
        silence(sys.stdout.fileno())
        raise ShapetraceError(
            f"cannot write all of the diff to standard output: {error.strerror}"
        ) from error


def canvas(output: Path | None) -> Canvas:
    """The screen's width and colours; a file or a pipe has no width unless COLUMNS gives one."""
    if output is not None or sys.stdout is None:
        return Canvas()
    screen = sys.stdout.isatty()
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) > 0 else None
    if width is None and screen:
        width = os.get_terminal_size(sys.stdout.fileno()).columns or None
    color = screen and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return Canvas(width, color=color, unicode=encoding.startswith("utf"))


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ShapetraceError(f"cannot write {path}: {reason}; choose another file")
