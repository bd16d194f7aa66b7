"""What a training came to; the results of the other commands are records of `records` and `report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shapetrace.model import ModelConfig
from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training came to.

    Attributes:
        name: What was trained.
        config: Its configuration.
        losses: Per token, of each step, those before a resume included; empty without values.
        held_out: Steps and the loss on held-out text after them.
        tokens: Tokens of the data.
        trace: The first step, forward, backward and update; None after a resume.
        output: Where the checkpoint is; None when none was wanted.
        taken: Steps of this run; those before a resume not included.
    """

    name: str
    config: ModelConfig
    losses: tuple[float, ...]
    held_out: tuple[tuple[int, float], ...]
    tokens: int
    trace: Trace | None
    output: Path | None
    taken: int

    @property
    def without_values(self) -> bool:
        """Whether it ran on ``meta``, where a step has shapes and costs, and no loss."""
        return self.taken > 0 and not self.losses
