"""The Typer app with its commands, and the one place where errors become exit codes."""

import contextlib
import io
import re
import sys
import traceback
from importlib import import_module
from typing import Annotated

import typer

from shapetrace.cli.interrupt import CTRL_C
from shapetrace.cli.output import tell, write
from shapetrace.errors import ShapetraceError

_USAGE_ERROR = typer.BadParameter.__bases__[0]
_INTERRUPTED = 130
_COMMANDS = (
    "forward",
    "trace",
    "report",
    "annotate",
    "check",
    "configs",
    "generate",
    "attention",
    "train",
)
"""As `--help` lists them; each is the function of its name in the file of its name."""
_HELP = frozenset({"-h", "--help", "--version"})

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's help takes longer to import than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name in _COMMANDS:
    app.command()(getattr(import_module(f"shapetrace.cli.commands.{_name}"), _name))


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - Typer passes the option's value
    if wanted:
        from shapetrace import __version__  # noqa: PLC0415 - only this option needs it

        typer.echo(f"shapetrace {__version__}")
        raise typer.Exit


@app.callback()
def shapetrace(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Every tensor of a Transformer's pass: its name, named shape, size and cost."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Exits with 0 when all went well, 1 when a check found something or the model raised, 2 for
    bad input (one line on stderr), 130 after Ctrl-C.
    """
    given, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    sys.exit(_run(given, debug=debug))


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without ``--debug``, which may stand before or after the command."""
    return [word for word in arguments if word != "--debug"], "--debug" in arguments


def _run(arguments: list[str], *, debug: bool) -> int:
    with CTRL_C.watched():
        return _attempt(arguments, debug=debug)


def _attempt(arguments: list[str], *, debug: bool) -> int:
    try:
        return _helped(arguments) if _HELP.intersection(arguments) else _called(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except typer.Abort:
        return _INTERRUPTED
    except Exception as error:
        if CTRL_C.pressed:
            return _INTERRUPTED
        if not isinstance(error, (ShapetraceError, _USAGE_ERROR)):
            raise
        if debug:
            traceback.print_exc()
        return _explain(error)


def _called(arguments: list[str]) -> int:
    if not arguments:
        raise ShapetraceError("no command is given; `shapetrace --help` lists them")
    return int(app(args=arguments, prog_name="shapetrace", standalone_mode=False) or 0)


def _helped(arguments: list[str]) -> int:
    """Collect what is printed, so that it is written as results are: all of it, or an error."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = _called(arguments)
    write(text.getvalue(), None)
    return code


def _explain(error: Exception) -> int:
    """Print an error as one line on stderr; its exit code."""
    show = getattr(error, "format_message", None)
    message = show() if show else str(error)
    if not getattr(error, "verbatim", False):
        message = " ".join(message.split())
    tell(f"error: {_printable(_in_words(message))}\n")
    return int(getattr(error, "exit_code", ShapetraceError.exit_code))


def _in_words(message: str) -> str:
    """A message of the option parser without Python's names of types."""
    message = re.sub(r"is not a valid int(eger)?( range)?\b", "is not a whole number", message)
    return re.sub(r"is not a valid float( range)?\b", "is not a number", message)


def _printable(message: str) -> str:
    """A message that does nothing to a terminal, whatever names of files it holds."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1]
        for letter in message
    )
