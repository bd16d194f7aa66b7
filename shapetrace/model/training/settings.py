"""How to train: one frozen record, validated when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from shapetrace.model.errors import ModelError
from shapetrace.model.settings import check_seed


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How to train.

    Attributes:
        steps: Changes to the parameters.
        batch: Texts in a pass.
        seq: Tokens of each that are predicted.
        accumulate: Passes whose gradients are added up before a step.
        lr: Highest learning rate.
        last_lr: Learning rate at the end, as a part of the highest.
        warmup: Steps in which it rises.
        weight_decay: Of matrices; vectors are not decayed.
        beta1: How slowly AdamW forgets gradients.
        beta2: How slowly it forgets their squares.
        clip: Longest gradient over all parameters; a longer one is shortened.
        seed: Of batches, dropout and masking.
        bf16: Whether products are made in bfloat16.
        evaluate_every: Steps between evaluations.
        save_every: Steps between checkpoints.
        mask_rate: Part of the tokens that an encoder has to guess.

    Raises:
        ModelError: A value that cannot be.
    """

    steps: int = 1000
    batch: int = 8
    seq: int = 128
    accumulate: int = 1
    lr: float = 1e-3
    last_lr: float = 0.1
    warmup: int = 20
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0
    seed: int = 0
    bf16: bool = False
    evaluate_every: int = 100
    save_every: int = 500
    mask_rate: float = 0.15

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "seq", "accumulate", "evaluate_every", "save_every"):
            if getattr(self, name) < 1:
                raise ModelError(f"`{name}` is {getattr(self, name)}; it must be at least 1")
        for name in ("lr", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise ModelError(
                    f"`{name}` is {getattr(self, name)}; it must be positive and finite"
                )
        for name in ("warmup", "weight_decay"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ModelError(f"`{name}` is {getattr(self, name)}; it must not be negative")
        check_seed(self.seed)
        if not 0 < self.mask_rate <= 1:
            raise ModelError(f"`mask_rate` is {self.mask_rate}; it must be above 0 and at most 1")


class TrainingOptions(TypedDict, total=False):
    """Some of the fields of `TrainingSettings`, by name."""

    steps: int
    batch: int
    seq: int
    accumulate: int
    lr: float
    last_lr: float
    warmup: int
    weight_decay: float
    beta1: float
    beta2: float
    clip: float
    seed: int
    bf16: bool
    evaluate_every: int
    save_every: int
    mask_rate: float


def learning_rate(settings: TrainingSettings, step: int) -> float:
    """The learning rate of a step, from 0: a straight rise, then half a cosine down.

    Loshchilov and Hutter 2017, equation 5, without restarts.
    """
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    rest = max(1, settings.steps - settings.warmup)
    falling = 0.5 * (1 + math.cos(math.pi * min(1.0, (step - settings.warmup) / rest)))
    return settings.lr * (settings.last_lr + (1 - settings.last_lr) * falling)
