"""What `shapetrace train` prints when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.cli.output import Style, show, write

if TYPE_CHECKING:
    from shapetrace.api.training import Trained


def show_training(trained: Trained, style: Style) -> int:
    """Show the first step, and where the training came to."""
    code = 0 if trained.trace is None else show(trained.trace, style)
    if style.format != "json":
        write(summary(trained), None)
    return code


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
