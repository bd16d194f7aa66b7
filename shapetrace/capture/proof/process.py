"""The processes that run jobs of proof.

Importing torch takes longer than most proofs. Where processes can be forked, one that has
imported it and nothing else stands by, and forks a child for each job: no job sees what
another one imported.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import subprocess
import sys
from pathlib import Path
from typing import IO

FORKS = sys.platform == "linux"
_COMMAND = (sys.executable, "-m", "shapetrace.capture.proof.child")


def spawned(folder: Path) -> str:
    """Run the job in a folder in a new process.

    Returns:
        What it wrote to standard error.
    """
    done = subprocess.run([*_COMMAND, str(folder)], capture_output=True, check=False)  # noqa: S603 - our own
    return done.stderr.decode("utf-8", "replace")


def forked(folder: Path) -> str:
    """Run the job in a folder in a child of the process that stands by.

    Returns:
        What it wrote to standard error.
    """
    try:
        _ask(str(folder))
    except OSError:  # it is gone
        _standing_by.cache_clear()
        return spawned(folder)
    with contextlib.suppress(OSError):
        return (folder / "stderr").read_text("utf-8", "replace")
    return ""


def stand_by(*modules: str) -> None:
    """Start the process that stands by, and have it import what many jobs need.

    Args:
        modules: None of them, and nothing that they import, may be a job's to replace.
    """
    if FORKS:
        for line in ("", *(f"import {module}" for module in modules)):
            if line:
                _ask(line)
            else:
                _standing_by()


def _ask(line: str) -> None:
    wish, answer = _standing_by()
    wish.write(line + "\n")
    wish.flush()
    if not answer.readline():
        raise BrokenPipeError


@functools.cache
def _standing_by() -> tuple[IO[str], IO[str]]:
    process = subprocess.Popen(  # noqa: S603 - our own
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    assert process.stdout is not None  # noqa: S101

    def end() -> None:
        process.communicate()

    atexit.register(end)
    return process.stdin, process.stdout
