"""Attention in one fused kernel: torch's `scaled_dot_product_attention`, no scores made.

Equal to `explicit.py` in what it returns. `visible` says who may look at whom; a query that
may look at nothing is let look everywhere and its output zeroed, because what a kernel
makes of a row without a single key differs from device to device.
"""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def attend_self(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h n d_k"],
    v: Float[Tensor, "B h n d_k"],
    visible: Bool[Tensor, "B 1 n n"] | None,
    drop: float,
    *,
    causal: bool = False,
) -> Float[Tensor, "B h n d_k"]:
    """Each position looks at the positions of its own sequence.

    Args:
        q: What each position looks for.
        k: What each position offers to be found by.
        v: What is taken from it.
        visible: Whether the query (third axis) may look at the key.
        drop: Probability of dropping a weight.
        causal: Without `visible`: whether to look at the left only, or everywhere.
    """
    if visible is None:
        return scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=causal)
    blind: Bool[Tensor, "B 1 n 1"] = ~visible.any(-1, keepdim=True)
    head_output: Float[Tensor, "B h n d_k"] = scaled_dot_product_attention(
        q, k, v, attn_mask=visible | blind, dropout_p=drop
    )
    return head_output.masked_fill(blind, 0.0)


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
    if visible is None:
        return scaled_dot_product_attention(q, k, v, dropout_p=drop)
    blind: Bool[Tensor, "B 1 n 1"] = ~visible.any(-1, keepdim=True)
    head_output: Float[Tensor, "B h n d_k"] = scaled_dot_product_attention(
        q, k, v, attn_mask=visible | blind, dropout_p=drop
    )
    return head_output.masked_fill(blind, 0.0)


def attend_self_grouped(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h_kv n d_k"],
    v: Float[Tensor, "B h_kv n d_k"],
    visible: Bool[Tensor, "B 1 n n"] | None,
    drop: float,
    *,
    causal: bool = False,
) -> Float[Tensor, "B h n d_k"]:
    """`attend_self`, with each key/value head shared by h / h_kv query heads."""
    if visible is None:
        return scaled_dot_product_attention(
            q, k, v, dropout_p=drop, is_causal=causal, enable_gqa=True
        )
    blind: Bool[Tensor, "B 1 n 1"] = ~visible.any(-1, keepdim=True)
    head_output: Float[Tensor, "B h n d_k"] = scaled_dot_product_attention(
        q, k, v, attn_mask=visible | blind, dropout_p=drop, enable_gqa=True
    )
    return head_output.masked_fill(blind, 0.0)


def attend_across_grouped(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h_kv m d_k"],
    v: Float[Tensor, "B h_kv m d_k"],
    visible: Bool[Tensor, "B 1 n m"] | None,
    drop: float,
) -> Float[Tensor, "B h n d_k"]:
    """`attend_across`, with each key/value head shared by h / h_kv query heads."""
    if visible is None:
        return scaled_dot_product_attention(q, k, v, dropout_p=drop, enable_gqa=True)
    blind: Bool[Tensor, "B 1 n 1"] = ~visible.any(-1, keepdim=True)
    head_output: Float[Tensor, "B h n d_k"] = scaled_dot_product_attention(
        q, k, v, attn_mask=visible | blind, dropout_p=drop, enable_gqa=True
    )
    return head_output.masked_fill(blind, 0.0)
