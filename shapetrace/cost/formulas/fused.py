"""FLOPs of whole layers that torch's fast paths run as one operator.

Source: the sum of the products inside, as in Vaswani et al., Attention Is All You Need
(2017): projections of q, k and v, scores and weighted sum, output projection; and for an
encoder layer the two products of the feed-forward.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import formula, input_shape, multiply_adds

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord, Shape


@formula("aten._native_multi_head_attention", "aten._triton_multi_head_attention")
def multi_head_attention(op: OpRecord) -> int:
    """`nn.MultiheadAttention` on its fast path; q, k and v are ``B n d_model``."""
    query, key, value = (input_shape(op, i) for i in range(3))
    return _attention(query, key, value, input_shape(op, 3), input_shape(op, 5))


@formula("aten._transformer_encoder_layer_fwd")
def encoder_layer(op: OpRecord) -> int:
    """`nn.TransformerEncoderLayer` on its fast path; the input is ``B n d_model``."""
    source = input_shape(op, 0)
    attention = _attention(source, source, source, input_shape(op, 1), input_shape(op, 3))
    tokens = prod(source[:-1])
    return attention + sum(multiply_adds(tokens, *input_shape(op, i)) for i in (9, 11))


def _attention(query: Shape, key: Shape, value: Shape, packed: Shape, output: Shape) -> int:
    """All products; `packed` is the ``3*d_model d_model`` weight of q, k and v."""
    batch, n, width = query
    m = key[-2]
    third = packed[0] // 3
    projections = sum(multiply_adds(*shape[:-1], third, packed[1]) for shape in (query, key, value))
    scores_and_sum = 2 * multiply_adds(batch, n, m, width)
    return projections + scores_and_sum + multiply_adds(batch, n, *output)
