"""How the next token is chosen: the likeliest, or drawn from what the filters leave."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Generator, Tensor, cat, rand
from torch.nn.functional import softmax

from shapetrace.model.errors import ModelError
from shapetrace.model.generation.filters import only_top_k, only_top_p, tempered
from shapetrace.model.settings import check_seed


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How to choose; greedy when nothing is given.

    Attributes:
        temperature: What scores are divided by; None for 1.
        top_k: Draw from this many of the likeliest; None for all.
        top_p: Draw from the fewest tokens that reach this probability; None for all.
        seed: Of the draws: the same seed, the same text.

    Raises:
        ModelError: A value that cannot be.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature == float("inf"):
            raise ModelError("temperature is inf; it must be finite")
        if self.temperature is not None and not self.temperature > 0:
            raise ModelError(
                f"temperature is {self.temperature:g}; it must be above 0 "
                "(for the likeliest token each time, choose greedy: leave it out)"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ModelError(f"top-k is {self.top_k}; it must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ModelError(f"top-p is {self.top_p:g}; it must be above 0 and at most 1")
        check_seed(self.seed)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken."""
        return self.temperature is None and self.top_k is None and self.top_p is None


def filtered(
    logits: Float[Tensor, "B vocab_size"], sampling: Sampling
) -> Float[Tensor, "B vocab_size"]:
    """The scores that are drawn from: temperature first, then top-k, then top-p."""
    if sampling.temperature is not None:
        logits = tempered(logits, sampling.temperature)
    if sampling.top_k is not None:
        logits = only_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = only_top_p(logits, sampling.top_p)
    return logits


def choose_token(
    logits: Float[Tensor, "B vocab_size"], sampling: Sampling, generators: Sequence[Generator]
) -> Int[Tensor, " B"]:
    """The next token of each text.

    Args:
        logits: A score for each token that may come next.
        sampling: How to choose.
        generators: The source of chance of each text, so that what one text draws does not
            hang on which others stand in the batch.
    """
    if sampling.greedy:
        return logits.argmax(dim=-1)
    return draw(filtered(logits, sampling), generators)


def draw(
    logits: Float[Tensor, "B vocab_size"], generators: Sequence[Generator]
) -> Int[Tensor, " B"]:
    """A token of each text, by its probability: where a uniform number falls among their sums."""
    up_to_here: Float[Tensor, "B vocab_size"] = softmax(logits.double(), dim=-1).cumsum(dim=-1)
    uniform: Float[Tensor, "B 1"] = cat(
        [rand(1, 1, generator=generator, dtype=up_to_here.dtype) for generator in generators]
    ).to(logits.device)
    total: Float[Tensor, "B 1"] = up_to_here[:, -1:]
    passed: Int[Tensor, " B"] = (up_to_here <= uniform * total).sum(dim=-1)
    return passed
