"""What `shapetrace train` prints when it is done."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shapetrace.cli.output import Style, show, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapetrace.api.training import Trained


def show_training(trained: Trained, style: Style) -> int:
    """Show the first step, and where the training came to."""
    code = 0 if trained.trace is None else show(trained.trace, style)
    if style.format != "json":
        write(summary(trained), None)
    return code


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
        f"trained {len(trained.losses)} steps on {trained.tokens:,} tokens: "
        f"loss {trained.losses[0]:.4f} -> {trained.losses[-1]:.4f}{held}\n"
    )
    if trained.output is not None:
        text += f"checkpoint: {trained.output}\n"
    return text
