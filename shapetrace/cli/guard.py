"""Run other people's code and keep the terminal: its prints, exits, forks and changes."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def guarded() -> Iterator[None]:
    """Run a model's code inside.

    What it prints, from Python or below, goes to stderr, so that stdout holds the result
    alone. Afterwards the working directory, the streams, the handler of Ctrl-C and the
    terminal's settings are what they were, and a child that the model forked has ended.
    """
    process, folder = os.getpid(), Path.cwd()
    streams = sys.stdin, sys.stdout, sys.stderr
    with _terminal(), _interruptible(), _stdout_on_stderr():
        try:
            yield
        finally:
            if os.getpid() != process:
                os._exit(0)  # the model forked, and this is the child: only the parent goes on
            sys.stdin, sys.stdout, sys.stderr = streams
            with contextlib.suppress(OSError):
                os.chdir(folder)


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Send what is written to stdout to stderr, by file descriptor where there is one."""
    out, err = _descriptor(sys.stdout), _descriptor(sys.stderr)
    if out is None or err is None:
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    stdout = sys.stdout
    stdout.flush()
    kept = os.dup(out)
    os.dup2(err, out)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):  # the model may have closed it
            stdout.flush()
        os.dup2(kept, out)
        os.close(kept)
        if stdout.closed:
            sys.stdout = os.fdopen(out, "w", encoding="utf-8", closefd=False)


def _descriptor(stream: object) -> int | None:
    try:
        number: int = stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return None
    return number


@contextmanager
def _interruptible() -> Iterator[None]:
    """Give Ctrl-C back to whoever had it, should the model have taken it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _terminal() -> Iterator[None]:
    """Keep the terminal's settings (echo, line mode) where there is a terminal."""
    try:
        import termios  # noqa: PLC0415 - Windows has none
    except ImportError:
        yield
        return
    place = _descriptor(sys.stdin)
    if place is None or not os.isatty(place):
        yield
        return
    kept = termios.tcgetattr(place)
    try:
        yield
    finally:
        termios.tcsetattr(place, termios.TCSADRAIN, kept)
