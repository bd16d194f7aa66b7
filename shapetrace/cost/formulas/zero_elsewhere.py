"""Operators of other namespaces than torch's main one that do no matrix product; see `zero`."""

from __future__ import annotations

_QUANTIZED = """
    add add_out add_relu add_relu_out add_scalar add_scalar_out add_scalar_relu
    add_scalar_relu_out batch_norm batch_norm1d batch_norm1d_relu batch_norm2d
    batch_norm2d_relu batch_norm3d batch_norm3d_relu batch_norm_relu cat cat_out cat_relu
    cat_relu_out celu clamp conv1d_prepack conv1d_unpack conv2d_prepack conv2d_unpack
    conv2d_unpack_sizes conv3d_prepack conv3d_unpack conv_prepack conv_transpose1d_prepack
    conv_transpose1d_unpack conv_transpose2d_prepack conv_transpose2d_unpack
    conv_transpose3d_prepack conv_transpose3d_unpack conv_unpack dropout elu embedding_4bit
    embedding_bag_2bit_prepack embedding_bag_2bit_prepack_with_rowwise_min_max
    embedding_bag_2bit_rowwise_offsets embedding_bag_2bit_unpack embedding_bag_4bit
    embedding_bag_4bit_prepack embedding_bag_4bit_prepack_with_rowwise_min_max
    embedding_bag_4bit_rowwise_offsets embedding_bag_4bit_unpack embedding_bag_byte
    embedding_bag_byte_prepack embedding_bag_byte_prepack_with_rowwise_min_max
    embedding_bag_byte_rowwise_offsets embedding_bag_byte_unpack embedding_bag_prepack
    embedding_bag_unpack embedding_byte group_norm hardswish instance_norm layer_norm
    leaky_relu linear_prepack linear_prepack_fp16 linear_prepack_fp16_legacy
    linear_prepack_legacy linear_unpack linear_unpack_fp16 make_quantized_cell_params
    make_quantized_cell_params_dynamic make_quantized_cell_params_fp16 max_pool1d max_pool2d
    mul mul_out mul_relu mul_relu_out mul_scalar mul_scalar_out mul_scalar_relu
    mul_scalar_relu_out prelu relu6 sigmoid softmax threshold
"""
_VISION = """
    _roi_align_backward nms ps_roi_align ps_roi_pool roi_align roi_pool
    _ps_roi_align_backward _ps_roi_pool_backward _roi_pool_backward
"""
ELSEWHERE = {
    "quantized": frozenset(_QUANTIZED.split()),
    "torchvision": frozenset(_VISION.split()),
}
"""By namespace other than torch's main one, the operators that do no product."""
