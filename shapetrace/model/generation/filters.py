"""What makes some next tokens likelier and others impossible, before one is drawn."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, finfo, float32
from torch.nn.functional import softmax

_MINUS_INFINITY = float("-inf")
LOWEST = finfo(float32).tiny
"""Lowest temperature that is not 0 in the type that is divided in."""


def tempered(
    logits: Float[Tensor, "B vocab_size"], temperature: float
) -> Float[Tensor, "B vocab_size"]:
    """Scores divided by a temperature: below 1 the likely become likelier, above 1 less so.

    The highest is taken off first, which changes no probability: what is below it may then
    fall to minus infinity, but nothing becomes infinite or NaN, however low the temperature.
    """
    highest: Float[Tensor, "B 1"] = logits.amax(dim=-1, keepdim=True)
    return (logits - highest) / max(temperature, LOWEST)


def only_top_k(logits: Float[Tensor, "B vocab_size"], k: int) -> Float[Tensor, "B vocab_size"]:
    """The `k` highest scores, and those equal to the last of them; Fan et al. 2018."""
    highest: Float[Tensor, "B k"] = logits.topk(min(k, logits.shape[-1])).values
    return logits.masked_fill(logits < highest[:, -1:], _MINUS_INFINITY)


def only_top_p(logits: Float[Tensor, "B vocab_size"], p: float) -> Float[Tensor, "B vocab_size"]:
    """The fewest tokens whose probabilities reach `p`; at least one; Holtzman et al. 2020."""
    order: Int[Tensor, "B vocab_size"] = logits.argsort(dim=-1)
    ascending: Float[Tensor, "B vocab_size"] = logits.gather(-1, order)
    up_to_here: Float[Tensor, "B vocab_size"] = softmax(ascending, dim=-1).cumsum(dim=-1)
    out: Bool[Tensor, "B vocab_size"] = up_to_here <= 1 - p
    out[:, -1] = False
    return logits.masked_fill(out.scatter(-1, order, out), _MINUS_INFINITY)
