"""FLOPs of attention kernels.

Forward: ``q k^T`` and ``weights v``, so per head and pair of positions one multiply-add
for each element of a key and of a value: ``2 * B * h * n * m * (d_k + d_v)``. Key/value
heads that are shared (grouped-query) save memory, not FLOPs. A causal mask is not
discounted, and softmax is not counted. Backward: the kernels keep no n x m tensor, so
they make the scores again; then come the gradients of weights, v, q and k:
``2 * B * h * n * m * (3 d_k + 2 d_v)``. Attention that is not fused keeps its weights,
so its backward is the four products that run, without the fifth.
Source: Dao et al., FlashAttention (2022), algorithms 1 and 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import attribute, formula, input_shape, multiply_adds

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord, Shape

_LENGTHS = ("max_q", "max_k")
_EFFICIENT_LENGTHS = ("max_seqlen_q", "max_seqlen_k")


@formula(
    "aten.scaled_dot_product_attention",
    "aten._scaled_dot_product_attention_math",
    "aten._scaled_dot_product_attention_math_for_mps",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
    "aten._scaled_dot_product_fused_attention_overrideable",
    "aten._triton_scaled_dot_attention",
    "higher_order.flex_attention",
)
def attention(op: OpRecord) -> int:
    """Heads before positions: ``B h n d_k``; any axes before the last two."""
    return _forward(*_of_heads_first(op, 0))


@formula(
    "aten._scaled_dot_product_flash_attention_backward",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._scaled_dot_product_efficient_attention_backward",
    "aten._scaled_dot_product_cudnn_attention_backward",
    "aten._scaled_dot_product_fused_attention_overrideable_backward",
)
def attention_backward(op: OpRecord) -> int:
    """The same after the gradient of the output."""
    return _backward(*_of_heads_first(op, 1))


@formula("aten._flash_attention_forward", attributes=_LENGTHS)
def flash_forward(op: OpRecord) -> int | None:
    """Positions before heads, ``B n h d_k``, or packed, ``total h d_k``."""
    work = _of_positions_first(op, 0, 3, _LENGTHS)
    return None if work is None else _forward(*work)


@formula("aten._flash_attention_forward_no_dropout_inplace", attributes=_LENGTHS)
def flash_inplace(op: OpRecord) -> int | None:
    """The same, after the tensor that receives the result."""
    work = _of_positions_first(op, 1, 4, _LENGTHS)
    return None if work is None else _forward(*work)


@formula("aten._flash_attention_backward", attributes=_LENGTHS)
def flash_backward(op: OpRecord) -> int | None:
    """Its backward; q, k and v follow the gradient, the offsets follow out and logsumexp."""
    work = _of_positions_first(op, 1, 6, _LENGTHS)
    return None if work is None else _backward(*work)


@formula("aten._efficient_attention_forward", attributes=_EFFICIENT_LENGTHS)
def efficient_forward(op: OpRecord) -> int | None:
    """Positions before heads, with a bias before the offsets."""
    work = _of_positions_first(op, 0, 4, _EFFICIENT_LENGTHS)
    return None if work is None else _forward(*work)


@formula("aten._efficient_attention_backward", attributes=_EFFICIENT_LENGTHS)
def efficient_backward(op: OpRecord) -> int | None:
    """Its backward, with bias and output before the offsets."""
    work = _of_positions_first(op, 1, 6, _EFFICIENT_LENGTHS)
    return None if work is None else _backward(*work)


@formula("aten._cudnn_attention_forward")
def cudnn_forward(op: OpRecord) -> int | None:
    """Heads first; packed sequences, whose lengths the shapes do not tell, are refused."""
    packed = _given(op, 4)
    return None if packed else _forward(*_of_heads_first(op, 0))


@formula("aten._cudnn_attention_backward")
def cudnn_backward(op: OpRecord) -> int | None:
    """Its backward; packed when q has no batch axis."""
    packed = len(input_shape(op, 1)) < 4  # noqa: PLR2004 - B h n d_k
    return None if packed else _backward(*_of_heads_first(op, 1))


Work = tuple[int, int, int, int, int]
"""Query heads in all (B times h), n, m, d_k, d_v."""


def _forward(heads: int, n: int, m: int, d_k: int, d_v: int) -> int:
    return multiply_adds(heads, n, m, d_k + d_v)


def _backward(heads: int, n: int, m: int, d_k: int, d_v: int) -> int:
    return multiply_adds(heads, n, m, 3 * d_k + 2 * d_v)


def _of_heads_first(op: OpRecord, query: int) -> Work:
    q, k, v = (input_shape(op, query + i) for i in range(3))
    heads = 1
    for axis in range(len(q) - 2):
        heads *= max(q[axis], _axis(k, axis, len(q)), _axis(v, axis, len(q)))
    return heads, q[-2], k[-2], q[-1], v[-1]


def _axis(shape: Shape, axis: int, rank: int) -> int:
    """The size of an axis under broadcasting to `rank`."""
    return shape[axis - rank + len(shape)] if axis - rank + len(shape) >= 0 else 1


def _of_positions_first(
    op: OpRecord, query: int, offsets: int, lengths: tuple[str, str]
) -> Work | None:
    """The work of a kernel that takes packed sequences too.

    Packed: offsets tell where each sequence begins, and their values are not recorded.
    When all are as long as the longest, which total and maximum tell, the work is known.
    """
    q, k, v = (input_shape(op, query + i) for i in range(3))
    if not _given(op, offsets):
        return q[-4] * q[-2], q[-3], k[-3], q[-1], v[-1]
    batch = input_shape(op, offsets)[0] - 1
    n, m = (int(str(attribute(op, name))) for name in lengths)
    if batch == 1:
        n, m = q[-3], k[-3]
    if (q[-3], k[-3]) != (batch * n, batch * m):
        return None
    return batch * q[-2], n, m, q[-1], v[-1]


def _given(op: OpRecord, position: int) -> bool:
    return position < len(op.inputs) and op.inputs[position] is not None
