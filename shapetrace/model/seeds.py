"""Which seeds there are: one range for weights, inputs, draws and training."""

from __future__ import annotations

from shapetrace.model.errors import ModelError

SEEDS = 1 << 64
"""As many as torch's generators take."""


def check_seed(seed: int) -> None:
    """Refuse a seed that torch cannot take.

    Raises:
        ModelError: Naming the range.
    """
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise ModelError(f"seed {seed!r}: give a whole number from 0 to {SEEDS - 1}")
