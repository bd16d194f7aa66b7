"""FLOPs of convolutions.

Each element of the result takes one multiply-add per tap of the kernel and per input
channel of its group; a transposed convolution does the same per element of its input.
Taps that fall on padding are counted: implementations multiply them too.
Source: Dumoulin and Visin, A guide to convolution arithmetic for deep learning (2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import (
    attribute,
    formula,
    input_shape,
    integers,
    multiply_adds,
    output_shape,
)

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord, Shape


def _taps(swept: Shape, weight: Shape) -> int:
    """Every element of `swept` meets a whole filter: ``weight`` without its first axis."""
    return multiply_adds(*swept, *weight[1:])


@formula(
    "aten.convolution",
    "aten._convolution",
    "aten.convolution_overrideable",
    attributes=("transposed",),
)
def convolution(op: OpRecord) -> int:
    """The general operator; `weight` is C_out first, or C_in first when transposed."""
    swept = input_shape(op, 0) if attribute(op, "transposed") else output_shape(op)
    return _taps(swept, input_shape(op, 1))


@formula(
    "aten.conv1d",
    "aten.conv2d",
    "aten.conv3d",
    "aten._convolution_mode",
    "aten._conv_depthwise2d",
    "aten.conv_depthwise3d",
    "aten.thnn_conv2d",
    "aten._slow_conv2d_forward",
    "aten.slow_conv3d",
    "aten.slow_conv3d_forward",
    "aten.slow_conv_dilated2d",
    "aten.slow_conv_dilated3d",
    "aten._nnpack_spatial_convolution",
    "aten.cudnn_convolution",
    "aten.cudnn_convolution_relu",
    "aten.cudnn_convolution_add_relu",
    "aten.miopen_convolution",
    "aten.miopen_convolution_relu",
    "aten.miopen_convolution_add_relu",
    "aten.miopen_depthwise_convolution",
    "aten.mkldnn_convolution",
    "aten._mps_convolution",
    "mkldnn._convolution_pointwise",
)
def plain_convolution(op: OpRecord) -> int:
    """An operator that is never transposed."""
    return _taps(output_shape(op), input_shape(op, 1))


@formula(
    "aten.conv_transpose1d",
    "aten.conv_transpose2d",
    "aten.conv_transpose3d",
    "aten.slow_conv_transpose2d",
    "aten.slow_conv_transpose3d",
    "aten.cudnn_convolution_transpose",
    "aten.miopen_convolution_transpose",
    "aten._mps_convolution_transpose",
    "mkldnn._convolution_transpose_pointwise",
)
def transposed_convolution(op: OpRecord) -> int:
    """An operator that is always transposed."""
    return _taps(input_shape(op, 0), input_shape(op, 1))


@formula(
    "aten.convolution_backward",
    "aten.convolution_backward_overrideable",
    attributes=("transposed", "output_mask"),
)
def convolution_backward(op: OpRecord) -> int:
    """The gradients of input and weight, where wanted, each of the forward's size."""
    swept = input_shape(op, 1 if attribute(op, "transposed") else 0)
    return _taps(swept, input_shape(op, 2)) * _wanted(op)


@formula("aten._slow_conv2d_backward", attributes=("output_mask",))
def plain_backward(op: OpRecord) -> int:
    """The same for an operator that is never transposed."""
    return _taps(input_shape(op, 0), input_shape(op, 2)) * _wanted(op)


@formula("aten.mps_convolution_backward", attributes=("output_mask",))
def mps_backward(op: OpRecord) -> int:
    """The same with the input before the gradient."""
    return _taps(input_shape(op, 1), input_shape(op, 2)) * _wanted(op)


@formula("aten.mps_convolution_transpose_backward", attributes=("output_mask",))
def mps_transpose_backward(op: OpRecord) -> int:
    """The same, transposed."""
    return _taps(input_shape(op, 0), input_shape(op, 2)) * _wanted(op)


@formula("aten.conv_tbc")
def conv_tbc(op: OpRecord) -> int:
    """Time first: `weight` is taps, C_in, C_out."""
    taps, channels, _ = input_shape(op, 1)
    return multiply_adds(*output_shape(op), taps, channels)


@formula("aten.conv_tbc_backward")
def conv_tbc_backward(op: OpRecord) -> int:
    """The gradients of input and weight."""
    taps, channels, _ = input_shape(op, 2)
    return 2 * multiply_adds(*input_shape(op, 0), taps, channels)


def _wanted(op: OpRecord) -> int:
    mask = integers(op, "output_mask")
    return bool(mask[0]) + bool(mask[1])


_PACKED = ("packed_weight", "weight")
"""A packed weight's shape is recorded in its place; older overloads call it `weight`."""


@formula(
    "quantized.conv1d",
    "quantized.conv1d_relu",
    "quantized.conv1d_dynamic",
    "quantized.conv2d",
    "quantized.conv2d_relu",
    "quantized.conv2d_dynamic",
    "quantized.conv2d_add",
    "quantized.conv2d_add_relu",
    "quantized.conv3d",
    "quantized.conv3d_relu",
    "quantized.conv3d_dynamic",
    attributes=_PACKED,
)
def quantized_convolution(op: OpRecord) -> int:
    """On quantised values: each product is one of whole numbers."""
    return _taps(output_shape(op), _packed_weight(op))


@formula(
    "quantized.conv_transpose1d",
    "quantized.conv_transpose1d_dynamic",
    "quantized.conv_transpose2d",
    "quantized.conv_transpose2d_dynamic",
    "quantized.conv_transpose3d",
    "quantized.conv_transpose3d_dynamic",
    attributes=_PACKED,
)
def quantized_transposed_convolution(op: OpRecord) -> int:
    """The same, transposed; `weight` is C_in first."""
    return _taps(input_shape(op, 0), _packed_weight(op))


def _packed_weight(op: OpRecord) -> Shape:
    given = {name for name, _ in op.attributes}
    return integers(op, next((name for name in _PACKED if name in given), _PACKED[0]))


@formula("torchvision.deform_conv2d")
def deformable_convolution(op: OpRecord) -> int:
    """Every tap is read where the offsets say; what is multiplied is as without them."""
    return _taps(output_shape(op), input_shape(op, 1))
