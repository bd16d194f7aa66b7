"""Who may look at whom: True where the query's position may see the key's."""

from jaxtyping import Bool, Int
from torch import Tensor, ones
from torch import bool as boolean


def both_sides(mask: Bool[Tensor, "B n"]) -> Bool[Tensor, "B 1 n n"]:
    """An encoder's: every real token; `mask` is True at those and False at padding."""
    B, n = mask.shape
    return mask[:, None, None, :].expand(B, 1, n, n)


def across(mask: Bool[Tensor, "B m"], n: int) -> Bool[Tensor, "B 1 n m"]:
    """Cross-attention's: each of `n` queries sees every real token of the other sequence."""
    B, m = mask.shape
    return mask[:, None, None, :].expand(B, 1, n, m)


def left_side(
    token_ids: Int[Tensor, "B n"], mask: Bool[Tensor, "B n"] | None, window: int | None
) -> Bool[Tensor, "B 1 n n"]:
    """A decoder's: the own position and those before it, at most `window` in all.

    Args:
        token_ids: The sequences, for their sizes and device.
        mask: True at real tokens, False at padding; None where there is none.
        window: How many positions may be seen; None for all.
    """
    B, n = token_ids.shape
    left: Bool[Tensor, "n n"] = ones(n, n, dtype=boolean, device=token_ids.device).tril()
    if window is not None and window < n:
        left = left.triu(1 - window)
    if mask is None:
        return left.expand(B, 1, n, n)
    return left & mask[:, None, None, :]
