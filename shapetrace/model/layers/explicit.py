"""Attention step by step: the scores are made, and can be looked at.

softmax(q k^T / sqrt(d_k)) v, Vaswani et al. 2017, equation 1. `visible` says who may look
at whom; a query that may look at nothing takes nothing: its weights and output are zero.
"""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import dropout, softmax

MINUS_INFINITY = float("-inf")


def attend_self(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h n d_k"],
    v: Float[Tensor, "B h n d_k"],
    visible: Bool[Tensor, "B 1 n n"] | None,
    drop: float,
) -> Float[Tensor, "B h n d_k"]:
    """Each position looks at the positions of its own sequence.

    Args:
        q: What each position looks for.
        k: What each position offers to be found by.
        v: What is taken from it.
        visible: Whether the query (third axis) may look at the key; None for everywhere.
        drop: Probability of dropping a weight.
    """
    scores: Float[Tensor, "B h n n"] = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if visible is None:
        weights: Float[Tensor, "B h n n"] = softmax(scores, dim=-1)
    else:
        scores = scores.masked_fill(~visible, MINUS_INFINITY)
        weights = softmax(scores, dim=-1).masked_fill(~visible, 0.0)
    if drop:
        weights = dropout(weights, drop)
    head_output: Float[Tensor, "B h n d_k"] = weights @ v
    return head_output


def attend_across(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h m d_k"],
    v: Float[Tensor, "B h m d_k"],
    visible: Bool[Tensor, "B 1 n m"] | None,
    drop: float,
) -> Float[Tensor, "B h n d_k"]:
    """Each position looks at the positions of another sequence, or of a longer past.

    Args:
        q: What each position looks for.
        k: What each of the `m` positions offers to be found by.
        v: What is taken from it.
        visible: Whether the query (third axis) may look at the key; None for everywhere.
        drop: Probability of dropping a weight.
    """
    scores: Float[Tensor, "B h n m"] = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if visible is None:
        weights: Float[Tensor, "B h n m"] = softmax(scores, dim=-1)
    else:
        scores = scores.masked_fill(~visible, MINUS_INFINITY)
        weights = softmax(scores, dim=-1).masked_fill(~visible, 0.0)
    if drop:
        weights = dropout(weights, drop)
    head_output: Float[Tensor, "B h n d_k"] = weights @ v
    return head_output


def attend_self_grouped(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h_kv n d_k"],
    v: Float[Tensor, "B h_kv n d_k"],
    visible: Bool[Tensor, "B 1 n n"] | None,
    drop: float,
) -> Float[Tensor, "B h n d_k"]:
    """`attend_self`, with each key/value head shared by h / h_kv query heads."""
    sharing = q.shape[1] // k.shape[1]
    shared_k: Float[Tensor, "B h n d_k"] = k.repeat_interleave(sharing, dim=1)
    shared_v: Float[Tensor, "B h n d_k"] = v.repeat_interleave(sharing, dim=1)
    return attend_self(q, shared_k, shared_v, visible, drop)


def attend_across_grouped(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h_kv m d_k"],
    v: Float[Tensor, "B h_kv m d_k"],
    visible: Bool[Tensor, "B 1 n m"] | None,
    drop: float,
) -> Float[Tensor, "B h n d_k"]:
    """`attend_across`, with each key/value head shared by h / h_kv query heads."""
    sharing = q.shape[1] // k.shape[1]
    shared_k: Float[Tensor, "B h m d_k"] = k.repeat_interleave(sharing, dim=1)
    shared_v: Float[Tensor, "B h m d_k"] = v.repeat_interleave(sharing, dim=1)
    return attend_across(q, shared_k, shared_v, visible, drop)
