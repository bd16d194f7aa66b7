"""FLOPs of products of matrices and vectors.

For each element of the result, one multiply-add per element of the contracted axis:
``2 * elements(result) * k``. A bias that is added is not counted.
Source: Golub and Van Loan, Matrix Computations, section 1.1.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import (
    MissingShapeError,
    attribute,
    formula,
    input_shape,
    integers,
    multiply_adds,
    output_shape,
)

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord


def _product(op: OpRecord, left: int) -> int:
    """A product whose left factor, contracted on its last axis, is argument `left`."""
    return multiply_adds(*output_shape(op), input_shape(op, left)[-1])


@formula(
    "aten.mm",
    "aten.bmm",
    "aten.mv",
    "aten.dot",
    "aten.vdot",
    "aten.matmul",
    "aten.linalg_matmul",
    "aten.linear",
    "aten.mkldnn_linear",
    "aten._int_mm",
    "aten._scaled_mm",
    "aten._scaled_mm_v2",
    "aten._weight_int8pack_mm",
    "aten._weight_int4pack_mm",
    "aten._weight_int4pack_mm_for_cpu",
    "aten._weight_int4pack_mm_with_scales_and_zeros",
    "aten._dyn_quant_matmul_4bit",
    "aten._mixed_dtypes_linear",
    "aten._wrapped_quantized_linear_prepacked",
    "aten.fbgemm_linear_int8_weight",
    "aten.fbgemm_linear_int8_weight_fp32_activation",
    "aten.fbgemm_linear_fp16_weight",
    "aten.fbgemm_linear_fp16_weight_fp32_activation",
    "aten._sparse_semi_structured_linear",
    "mkldnn._linear_pointwise",
    "quantized.linear",
    "quantized.linear_relu",
    "quantized.linear_dynamic",
    "quantized.linear_relu_dynamic",
    "quantized.linear_dynamic_fp16",
    "quantized.linear_relu_dynamic_fp16",
    "quantized.linear_dynamic_fp16_unpacked_weight",
    "quantized.linear_leaky_relu",
    "quantized.linear_tanh",
    "quantized.matmul",
)
def product_of_first(op: OpRecord) -> int:
    """``a @ b`` or ``linear(a, w)``, with `a` of any rank; weights may be packed."""
    return _product(op, 0)


@formula("aten.addmm", "aten.baddbmm", "aten.addmv", "aten._addmm_activation")
def product_of_second(op: OpRecord) -> int:
    """``bias + a @ b``."""
    return _product(op, 1)


@formula("aten.inner")
def inner(op: OpRecord) -> int:
    """Products over the last axes; with a scalar it is elementwise."""
    left, right = input_shape(op, 0), input_shape(op, 1)
    return _product(op, 0) if left and right else 0


@formula("aten.linalg_vecdot")
def vecdot(op: OpRecord) -> int:
    """A dot product of two vectors; torch does the batched form elementwise."""
    left, right = input_shape(op, 0), input_shape(op, 1)
    return multiply_adds(*left) if len(left) == len(right) == 1 else 0


@formula("aten.addbmm")
def addbmm(op: OpRecord) -> int:
    """A sum of products over the batch: every batch element's product is made."""
    batch, rows, contracted = input_shape(op, 1)
    return multiply_adds(batch, rows, contracted, input_shape(op, 2)[-1])


@formula("aten._foreach_mm")
def foreach_mm(op: OpRecord) -> int:
    """One product per pair of the two lists, which are recorded one after the other."""
    pairs = len(op.inputs) // 2
    return sum(
        multiply_adds(*input_shape(op, i), input_shape(op, pairs + i)[-1]) for i in range(pairs)
    )


@formula("aten._grouped_mm", "aten._scaled_grouped_mm", "aten._scaled_grouped_mm_v2")
def grouped_mm(op: OpRecord) -> int:
    """Products of groups of rows, each with its own matrix.

    With two 2-d factors the groups divide the contracted axis, so that the axis is
    walked once and not once per group.
    """
    left, right = input_shape(op, 0), input_shape(op, 1)
    if len(left) == len(right) == 2:  # noqa: PLR2004 - matrices
        return multiply_adds(*left, right[-1])
    return _product(op, 0)


@formula("aten.linear_backward", "aten.mkldnn_linear_backward", attributes=("output_mask",))
def linear_backward(op: OpRecord) -> int:
    """The gradients of input and weight, each one product of the forward's size."""
    wanted = integers(op, "output_mask")
    once = multiply_adds(*input_shape(op, 1), input_shape(op, 0)[-1])
    return once * (bool(wanted[0]) + bool(wanted[1]))


@formula("aten.mkldnn_linear_backward_input")
def linear_backward_input(op: OpRecord) -> int:
    """The gradient of the input: ``grad @ weight``."""
    return _product(op, 0)


@formula("aten.mkldnn_linear_backward_weights")
def linear_backward_weights(op: OpRecord) -> int:
    """The gradient of the weight: ``grad.T @ input``."""
    return multiply_adds(*input_shape(op, 0), input_shape(op, 1)[-1])


@formula("aten.linalg_multi_dot", "aten.chain_matmul")
def multi_dot(op: OpRecord) -> int:
    """A chain of products in the cheapest order, which torch looks for too.

    Source: Cormen et al., Introduction to Algorithms, section 14.2 (matrix chains).
    """
    shapes = [input_shape(op, i) for i in range(len(op.inputs))]
    shapes[0] = (1, *shapes[0]) if len(shapes[0]) == 1 else shapes[0]
    shapes[-1] = (*shapes[-1], 1) if len(shapes[-1]) == 1 else shapes[-1]
    edges = [shapes[0][0], *(shape[1] for shape in shapes)]
    best = {(i, i): 0 for i in range(len(shapes))}
    for length in range(1, len(shapes)):
        for first in range(len(shapes) - length):
            last = first + length
            best[first, last] = min(
                best[first, cut]
                + best[cut + 1, last]
                + multiply_adds(edges[first], edges[cut + 1], edges[last + 1])
                for cut in range(first, last)
            )
    return best[0, len(shapes) - 1]


@formula("aten.cov", "aten.corrcoef")
def covariance(op: OpRecord) -> int:
    """The product of the centred observations with their own transpose."""
    shape = input_shape(op, 0)
    return multiply_adds(*output_shape(op), shape[-1] if shape else 1)


@formula("aten._euclidean_dist")
def euclidean_distance(op: OpRecord) -> int:
    """``|a|^2 - 2ab + |b|^2`` as one product: both factors gain two columns."""
    return multiply_adds(*output_shape(op), input_shape(op, 0)[-1] + 2)


@formula("aten.cdist", attributes=("p", "compute_mode"))
def cdist(op: OpRecord) -> int:
    """Distances of all pairs: by a product for p = 2 and enough rows, else elementwise."""
    by_size, always, never = 0, 1, 2  # torch's compute modes
    rows = max(input_shape(op, 0)[-2], input_shape(op, 1)[-2])
    mode = attribute(op, "compute_mode", by_size)
    if mode == never or attribute(op, "p", 2.0) != 2.0:  # noqa: PLR2004 - the Euclidean norm
        return 0
    return euclidean_distance(op) if mode == always or rows > 25 else 0  # noqa: PLR2004 - torch's


@formula("aten.tensordot", attributes=("dims_self", "dims_other"))
def tensordot(op: OpRecord) -> int:
    """A product over the listed axes; an axis of size 1 is stretched to the other's."""
    left, right = input_shape(op, 0), input_shape(op, 1)
    pairs = zip(integers(op, "dims_self"), integers(op, "dims_other"), strict=True)
    contracted = [left[a] if right[b] != 1 else 1 for a, b in pairs]
    if not contracted and not (left and right):
        raise MissingShapeError(f"{op.name} of a scalar contracts nothing")
    return 2 * prod(output_shape(op)) * prod(contracted)
