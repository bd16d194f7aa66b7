"""What `shapetrace train` prints when it is done."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shapetrace.cli.output import Style, show, write
from shapetrace.errors import ShapetraceError
from shapetrace.report.reporters import TABLE, choose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapetrace.api.training import Trained


def show_training(trained: Trained, style: Style) -> int:
    """Show the first step, and where the training came to."""
    code = 0 if trained.trace is None else show(trained.trace, style)
    if style.output is None and choose(style.format, None) is not TABLE:
        if sys.stderr is not None:  # stdout holds a file for programs, and nothing else
            sys.stderr.write(summary(trained))
    else:
        write(summary(trained), None)
    return code


def check_shown(style: Style, save: Path | None, *, trace: bool, resume: bool) -> None:
    """Refuse to write or keep the first step where none is going to be traced.

    Raises:
        ShapetraceError: Naming both options.
    """
    options = {"--save": save, "--output": style.output}
    given = next((name for name, value in options.items() if value is not None), None)
    if given is None or (trace and not resume):
        return
    without = "--resume" if resume else "--no-trace"
    raise ShapetraceError(
        f"{given} is for the trace of the first step, and with {without} there is none; "
        "leave out one of them"
    )


@contextmanager
def told_where(output: Path | None) -> Iterator[None]:
    """After Ctrl-C, say on stderr which checkpoint there is to go on from."""
    try:
        yield
    except KeyboardInterrupt:
        if output is not None and (output / "training.json").is_file() and sys.stderr is not None:
            step = json.loads((output / "training.json").read_text(encoding="utf-8")).get("step")
            sys.stderr.write(
                f"\ninterrupted; checkpoint of step {step}: {output} (--resume goes on from it)\n"
            )
        raise


def summary(trained: Trained) -> str:
    """A line or two: steps, losses, where the checkpoint is."""
    if not trained.losses:
        return "nothing was left to train\n"
    held = f", held-out loss {trained.held_out[-1][1]:.4f}" if trained.held_out else ""
    text = (
        f"trained {len(trained.losses)} steps on {trained.tokens:,} tokens of data: "
        f"loss {trained.losses[0]:.4f} -> {trained.losses[-1]:.4f}{held}\n"
    )
    if trained.output is not None:
        text += f"checkpoint: {trained.output}\n"
    return text
