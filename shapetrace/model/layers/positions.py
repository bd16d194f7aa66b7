"""Where a token stands: fixed sines, a learned row per position, or rotary angles.

Fixed tables are made anew in each pass from the configuration's numbers: no buffer to keep,
to load, or to lose when a model is made without memory (on the meta device).
"""

import math

from jaxtyping import Bool, Float, Int
from torch import Tensor, arange, nn, stack, tensor, where
from torch.nn.functional import embedding

from shapetrace.model.config import ModelConfig
from shapetrace.model.errors import ModelError
from shapetrace.model.layers.parameters import matrix


class LearnedPositions(nn.Module):
    """A learned row per position (GPT-2, BERT)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = matrix(config.max_positions, config.d_model)

    def forward(
        self, x: Float[Tensor, "B n d_model"], start: int = 0
    ) -> Float[Tensor, "n d_model"]:
        """A row for each of the tokens `x`, the first of which is at position `start`.

        Raises:
            ModelError: There are fewer positions than that.
        """
        n, known = x.shape[1], self.weight.shape[0]
        if start + n > known:
            raise ModelError(f"{start + n} tokens, but only {known} positions (`max_positions`)")
        return self.weight[start : start + n]

    def at(
        self, x: Float[Tensor, "B n d_model"], position_ids: Int[Tensor, "B n"]
    ) -> Float[Tensor, "B n d_model"]:
        """A row for each of the tokens `x`, where texts of a batch stand apart."""
        del x  # of their number and dtype: the weight has its own
        return embedding(position_ids, self.weight)


class SinusoidalPositions(nn.Module):
    """sin and cos of pos / 10000^(2i / d_model); Vaswani et al. 2017, section 3.5."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d_model = config.d_model
        self.frequencies = [10000.0 ** -(i // 2 * 2 / d_model) for i in range(d_model)]
        self.even = [i % 2 == 0 for i in range(d_model)]

    def forward(
        self, x: Float[Tensor, "B n d_model"], start: int = 0
    ) -> Float[Tensor, "n d_model"]:
        """A row for each of the tokens `x`, the first of which is at position `start`."""
        even: Bool[Tensor, " d_model"] = tensor(self.even, device=x.device)
        frequencies: Float[Tensor, " d_model"] = tensor(self.frequencies, device=x.device)
        position: Int[Tensor, " n"] = arange(start, start + x.shape[1], device=x.device)
        angles: Float[Tensor, "n d_model"] = position[:, None] * frequencies
        return where(even, angles.sin(), angles.cos()).to(x.dtype)

    def at(
        self, x: Float[Tensor, "B n d_model"], position_ids: Int[Tensor, "B n"]
    ) -> Float[Tensor, "B n d_model"]:
        """A row for each of the tokens `x`, where texts of a batch stand apart."""
        even: Bool[Tensor, " d_model"] = tensor(self.even, device=position_ids.device)
        frequencies: Float[Tensor, " d_model"] = tensor(
            self.frequencies, device=position_ids.device
        )
        angles: Float[Tensor, "B n d_model"] = position_ids[:, :, None] * frequencies
        return where(even, angles.sin(), angles.cos()).to(x.dtype)


class RotaryPositions(nn.Module):
    """Angles that turn pairs of a query's or a key's entries; Su et al. 2021.

    Entry i is paired with entry i + d_k/2. Turning is ``x * cos + roll(x, d_k/2) * sin``
    with the sine of the first half negated: the frequencies of that half are negative,
    which changes the sign of its sines and not its cosines.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        half = rotary_frequencies(config)
        self.frequencies = [-f for f in half] + half

    def forward(self, x: Float[Tensor, "B n d_model"], start: int = 0) -> Float[Tensor, "2 n d_k"]:
        """Cosines and sines for the tokens `x`, the first of which is at position `start`."""
        frequencies: Float[Tensor, " d_k"] = tensor(self.frequencies, device=x.device)
        position: Int[Tensor, " n"] = arange(start, start + x.shape[1], device=x.device)
        angles: Float[Tensor, "n d_k"] = position[:, None] * frequencies
        return stack((angles.cos(), angles.sin())).to(x.dtype)


def added_positions(config: ModelConfig) -> LearnedPositions | SinusoidalPositions | None:
    """The positions that are added to the embedding; None where there are none."""
    if config.positions == "learned":
        return LearnedPositions(config)
    return SinusoidalPositions(config) if config.positions == "sinusoidal" else None


def rotary_positions(config: ModelConfig) -> RotaryPositions | None:
    """The positions that turn queries and keys; None where there are none."""
    return RotaryPositions(config) if config.positions == "rope" else None


def rotary_frequencies(config: ModelConfig) -> list[float]:
    """Radians per position for each of the d_k/2 pairs.

    base^(-2i / d_k); with a factor, low frequencies are divided by it and those between the
    two limits interpolated, as in Llama 3.1 (Meta's `apply_scaling`).
    """
    d_k = config.d_k
    plain = [config.rope_base ** -(2 * i / d_k) for i in range(d_k // 2)]
    if config.rope_factor == 1.0:
        return plain
    return [_stretched(frequency, config) for frequency in plain]


def _stretched(frequency: float, config: ModelConfig) -> float:
    low, high = config.rope_low_factor, config.rope_high_factor
    turns = config.rope_original_positions * frequency / (2 * math.pi)
    kept = min(1.0, max(0.0, (turns - low) / (high - low)))
    return kept * frequency + (1 - kept) * frequency / config.rope_factor
