"""What makes some next tokens likelier and others impossible, before one is drawn."""

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softmax

MINUS_INFINITY = float("-inf")


def tempered(
    logits: Float[Tensor, "B vocab_size"], temperature: float
) -> Float[Tensor, "B vocab_size"]:
    """Scores divided by a temperature: below 1 the likely become likelier, above 1 less so."""
    return logits / temperature


def only_top_k(logits: Float[Tensor, "B vocab_size"], k: int) -> Float[Tensor, "B vocab_size"]:
    """The `k` highest scores, and those equal to the last of them; Fan et al. 2018."""
    highest: Float[Tensor, "B k"] = logits.topk(min(k, logits.shape[-1])).values
    return logits.masked_fill(logits < highest[:, -1:], MINUS_INFINITY)


def only_top_p(logits: Float[Tensor, "B vocab_size"], p: float) -> Float[Tensor, "B vocab_size"]:
    """The fewest tokens whose probabilities reach `p`; at least one; Holtzman et al. 2020."""
    order: Int[Tensor, "B vocab_size"] = logits.argsort(dim=-1)
    ascending: Float[Tensor, "B vocab_size"] = logits.gather(-1, order)
    up_to_here: Float[Tensor, "B vocab_size"] = softmax(ascending, dim=-1).cumsum(dim=-1)
    out: Bool[Tensor, "B vocab_size"] = up_to_here <= 1 - p
    out[:, -1] = False
    return logits.masked_fill(out.scatter(-1, order, out), MINUS_INFINITY)
