"""How a training goes, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

from shapetrace.cli.output import tell
from shapetrace.units import format_seconds

if TYPE_CHECKING:
    from shapetrace.model.training import Progress

_CELLS = 24


class Bar:
    """Shows loss, tokens per second and time left."""

    def __init__(self) -> None:
        self._screen = sys.stderr is not None and sys.stderr.isatty()
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last line standing."""
        if self._open:
            tell("\n")

    def step(self, progress: Progress) -> None:
        """Show one step; elsewhere than on a terminal only those that were evaluated."""
        text = line(progress)
        if self._screen:
            filled = _CELLS * progress.step // progress.steps
            bar = "#" * filled + "." * (_CELLS - filled)
            tell(f"\r[{bar}] {text}\x1b[K")
            self._open = True
        if progress.held_out_loss is not None:
            tell("\n" if self._screen else f"{text}\n")
            self._open = False


def line(progress: Progress) -> str:
    """A step in words."""
    parts: list[Any] = [
        f"step {progress.step}/{progress.steps}",
        f"loss {progress.loss:.4f}",
        f"{progress.tokens_per_second:,.0f} tokens/s",
        f"{format_seconds(round(progress.seconds_left))} left"
        if progress.seconds_left >= 1
        else "",
    ]
    if progress.held_out_loss is not None:
        parts.append(f"held-out loss {progress.held_out_loss:.4f}")
    return "  ".join(part for part in parts if part)
