"""Operators that do no matrix product, so that their FLOPs are 0 by the convention.

Kept apart from the operators that merely have no formula: those are reported. Names are
without namespace and variant; see `does_no_product`. Derived from the schemas and tags of
torch 2.13 (views by aliasing, elementwise by the `pointwise` tag) and sorted by family.
"""

from __future__ import annotations

import re

from shapetrace.cost.formulas.zero_elsewhere import ELSEWHERE

_FAMILIES = {
    "views, and what only moves or retypes memory": """
        _autocast_to_full_precision _autocast_to_reduced_precision _conj _fw_primal _indices
        _make_dual _neg_view _nested_get_values _nested_view_from_buffer
        _nested_view_from_jagged _reshape_alias _sparse_broadcast_to _unpack_dual _values
        adjoint alias as_strided broadcast_to ccol_indices chunk coalesce col_indices conj
        contiguous crow_indices detach diagonal dsplit expand expand_as flatten hsplit imag
        indices lift_fresh linalg_diagonal mH mT matrix_H moveaxis movedim narrow numpy_T
        permute pin_memory positive ravel real reshape reshape_as resolve_conj resolve_neg
        row_indices select slice slice_inverse split split_with_sizes squeeze swapaxes
        swapdims t tensor_split to transpose unbind unflatten unfold unsqueeze values view
        view_as view_as_complex view_as_real vsplit
    """,
    "elementwise (torch tags them so)": """
        __ilshift__ __ixor__ __lshift__ __rshift__ __xor__ _conj_physical abs acos acosh add
        addcdiv addcmul airy_ai angle asin asinh atan atan2 atanh bessel_j0 bessel_j1
        bessel_y0 bessel_y1 bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor ceil celu chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w clamp clamp_max
        clamp_min clip clone conj_physical copysign cos cosh deg2rad digamma div elu entr eq
        equal erf erfc erfcx erfinv exp exp2 expm1 float_power floor fmax fmin fmod frac
        frexp gcd ge gelu gt hardshrink hardsigmoid hardtanh heaviside hermite_polynomial_h
        hermite_polynomial_he hypot i0 i0e i1 i1e igamma igammac isfinite isinf isnan
        isneginf isposinf laguerre_polynomial_l lcm ldexp le leaky_relu
        legendre_polynomial_p lerp lgamma log log10 log1p log2 log_ndtr logaddexp logaddexp2
        logical_and logical_not logical_or logical_xor logit lt masked_fill max maximum min
        minimum mish modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
        modified_bessel_k1 mul mvlgamma nan_to_num native_dropout ndtri ne neg nextafter
        polygamma pow rad2deg reciprocal relu relu6 remainder round rrelu rsqrt rsub
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 selu sgn
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sigmoid sign signbit
        silu sin sinc sinh softplus softshrink spherical_bessel_j0 sqrt square sub tan tanh
        threshold true_divide trunc where xlog1py xlogy zeta
    """,
    "made from nothing, or at random": """
        _cudnn_init_dropout_state _dim_arange _dirichlet_grad _empty_affine_quantized
        _empty_per_channel_affine_quantized _fill_mem_eff_dropout_mask
        _functional_sym_constrain_range _functional_sym_constrain_range_for_size
        _fused_dropout _philox_key_fold_in _philox_key_split _philox_normal _philox_uniform
        _sample_dirichlet _sobol_engine_draw _sobol_engine_ff _sobol_engine_initialize_state
        _sobol_engine_scramble _standard_gamma _standard_gamma_grad alpha_dropout arange
        bartlett_window bernoulli binomial blackman_window cauchy dropout empty empty_like
        empty_permuted empty_quantized empty_strided exponential eye feature_alpha_dropout
        feature_dropout full full_like gammainc gammaincc gammaln geometric hamming_window
        hann_window kaiser_window linspace log_normal logspace multigammaln multinomial
        native_dropout new_empty new_empty_strided new_full new_ones new_zeros normal
        normal_functional ones ones_like poisson poisson_nll_loss rand rand_like randint
        randint_like randn randn_like random randperm range scalar_tensor
        sym_constrain_range sym_constrain_range_for_size tril_indices triu_indices uniform
        zeros zeros_like
    """,
    "optimizers and gradient scaling, elementwise": """
        _amp_foreach_non_finite_check_and_unscale _amp_update_scale _fused_adagrad
        _fused_adam _fused_adamw _fused_moving_avg_obs_fq_helper
        _fused_moving_avg_obs_fq_helper_functional _fused_sgd
    """,
    "sparse, nested and blocked layouts made from one another": """
        _coalesce _coalesced _convert_indices_from_coo_to_csr
        _convert_indices_from_csr_to_coo _embedding_bag_sparse _gather_sparse
        _jagged_to_padded_dense_forward _mkldnn_reshape _mkldnn_transpose
        _nested_compute_contiguous_strides_offsets _nested_from_padded
        _nested_from_padded_and_nested_example _nested_from_padded_tensor
        _nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen
        _nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_select
        _nested_sum _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned
        _nested_tensor_from_tensor_list _nested_tensor_size
        _nested_tensor_softmax_with_shape _nested_tensor_storage_offsets
        _nested_tensor_strides _nnz _padded_dense_to_jagged_forward
        _sparse_bsc_tensor_unsafe _sparse_bsr_tensor_unsafe _sparse_compressed_tensor_unsafe
        _sparse_compressed_tensor_with_dims _sparse_coo_tensor_unsafe
        _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors
        _sparse_csc_tensor_unsafe _sparse_csr_prod _sparse_csr_sum _sparse_csr_tensor_unsafe
        _sparse_log_softmax _sparse_mask_projection _sparse_softmax _sparse_sum _to_sparse
        _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr
        _to_sparse_semi_structured _validate_compressed_sparse_indices
        _validate_sparse_bsc_tensor_args _validate_sparse_bsr_tensor_args
        _validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args
        _validate_sparse_csc_tensor_args _validate_sparse_csr_tensor_args
        copy_sparse_to_sparse embedding_sparse is_coalesced mkldnn_reorder_conv2d_weight
        mkldnn_reorder_conv3d_weight nested_to_padded_tensor resize_as_sparse
        sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor
        sparse_csc_tensor sparse_csr_tensor sparse_dim sparse_mask sparse_resize
        sparse_resize_and_clear to_mkldnn to_sparse to_sparse_bsc to_sparse_bsr
        to_sparse_csc to_sparse_csr
    """,
    "quantized values made and read": """
        _choose_qparams_per_tensor _convert_weight_to_int4pack
        _convert_weight_to_int4pack_for_cpu _dyn_quant_pack_4bit_weight
        _fake_quantize_learnable_per_channel_affine
        _fake_quantize_learnable_per_tensor_affine
        _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor
        _nnpack_available _pack_padded_sequence _pad_packed_sequence _wrapped_linear_prepack
        choose_qparams_optimized dequantize fake_quantize_per_channel_affine
        fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine
        fake_quantize_per_tensor_affine_cachemask fbgemm_linear_quantize_weight
        fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
        fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis q_per_channel_scales
        q_per_channel_zero_points q_scale q_zero_point qscheme quantize_per_channel
        quantize_per_tensor quantize_per_tensor_dynamic
    """,
    "normalisation": """
        _batch_norm_impl_index _batch_norm_no_update _batch_norm_with_update
        _batch_norm_with_update_functional _fused_rms_norm _log_softmax _masked_softmax
        _native_batch_norm_legit _native_batch_norm_legit_functional
        _native_batch_norm_legit_no_training _safe_softmax _softmax _weight_norm
        _weight_norm_differentiable _weight_norm_interface batch_norm batch_norm_elemt
        batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        batch_norm_update_stats cudnn_batch_norm embedding_renorm frobenius_norm group_norm
        instance_norm layer_norm linalg_vector_norm log_softmax miopen_batch_norm
        native_batch_norm native_group_norm native_layer_norm native_norm norm
        norm_except_dim quantized_batch_norm renorm rms_norm softmax
    """,
    "pooling": """
        _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
        avg_pool1d avg_pool2d avg_pool3d fractional_max_pool2d fractional_max_pool3d
        max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
        max_pool3d_with_indices max_unpool2d max_unpool3d mkldnn_adaptive_avg_pool2d
        mkldnn_max_pool2d mkldnn_max_pool3d quantized_max_pool1d quantized_max_pool2d
        quantized_max_pool3d
    """,
    "resampling and padding": """
        _grid_sampler_2d_cpu_fallback _pad_circular _pad_enum _upsample_bicubic2d_aa
        _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d
        _upsample_nearest_exact2d _upsample_nearest_exact3d affine_grid_generator
        channel_shuffle col2im constant_pad_nd cudnn_affine_grid_generator
        cudnn_grid_sampler grid_sampler grid_sampler_2d grid_sampler_3d im2col meshgrid
        native_channel_shuffle pad pad_sequence pixel_shuffle pixel_unshuffle
        reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
        replication_pad2d replication_pad3d to_padded_tensor unfold upsample_bicubic2d
        upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
        upsample_nearest3d upsample_trilinear3d
    """,
    "losses": """
        _cdist _cdist_forward _ctc_loss _cudnn_ctc_loss _pdist _pdist_forward
        _use_cudnn_ctc_loss _use_miopen_ctc_loss binary_cross_entropy
        binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity
        cross_entropy_loss ctc_loss dist hinge_embedding_loss huber_loss is_distributed
        kl_div l1_loss margin_ranking_loss miopen_ctc_loss mse_loss multi_margin_loss
        multilabel_margin_loss multilabel_margin_loss_forward nll_loss nll_loss2d
        nll_loss2d_forward nll_loss_forward nll_loss_nd pairwise_distance pdist
        smooth_l1_loss soft_margin_loss triplet_margin_loss
    """,
    "indexing and embedding": """
        _embedding_bag _embedding_bag_dense _embedding_bag_forward_only
        _embedding_bag_per_sample_weights _index_put_impl _masked_scale _resize_output
        _unsafe_index _unsafe_index_put _unsafe_masked_index
        _unsafe_masked_index_put_accumulate argwhere as_strided_scatter bucketize
        count_nonzero diagonal_scatter embedding embedding_bag embedding_dense gather index
        index_add index_fill index_put index_reduce index_select is_nonzero masked_scatter
        masked_select nonzero nonzero_numpy nonzero_static one_hot output_nr put scatter
        scatter_add scatter_reduce searchsorted select select_scatter slice slice_scatter
        take take_along_dim value_selecting_reduction
    """,
    "copies and joins": """
        _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long
        _cast_Short _chunk_cat _copy_from _copy_from_and_resize _cudnn_rnn_flatten_weight
        _cufft_set_plan_cache_max_size _efficientzerotensor
        _has_compatible_shallow_copy_type _is_zerotensor _lazy_clone _make_dep_token
        _new_zeros_with_same_feature_meta _reshape _reshape_from_tensor
        _saturate_weight_to_fp16 _spdiags _stack _to _to_cpu _to_dense
        _use_cudnn_rnn_flatten_weight atleast_1d atleast_2d atleast_3d block_diag
        broadcast_tensors can_cast cat column_stack concat concatenate copy diag diag_embed
        diagflat diagonal dstack fill fill_diagonal flatten_dense_tensors flip fliplr flipud
        hstack is_set_to lift nanquantile quantile repeat repeat_interleave resize resize_as
        roll rot90 row_stack set set_data stack storage_offset sum_to_size
        sym_storage_offset tile to_dense topk tril triu type_as unflatten_dense_tensors
        unsafe_chunk unsafe_split unsafe_split_with_sizes vstack zero
    """,
    "questions about a tensor": """
        _add_batch_dim _assert_async _assert_scalar _assert_tensor_metadata
        _cufft_clear_plan_cache _cufft_get_plan_cache_max_size _cufft_get_plan_cache_size
        _debug_has_internal_overlap _dimI _dimV _functional_assert_async
        _functional_assert_scalar _has_same_storage_numel _is_all_true _is_any_true
        _linalg_check_errors _local_scalar_dense _print _propagate_xla_data
        _remove_batch_dim _version allclose cudnn_is_acceptable data dense_dim dim
        get_device is_complex is_conj is_contiguous is_floating_point is_inference is_leaf
        is_neg is_pinned is_same_size is_signed is_vulkan_available item numel promote_types
        record_stream requires_grad result_type retain_grad retains_grad size stride
        sym_is_contiguous sym_numel sym_size sym_stride unique_dim
    """,
    "reductions, scans, sorting and the rest that multiplies no matrices": """
        __and__ __iand__ __ior__ __irshift__ __or__ _add_relu _aminmax _cslt_compress
        _cummax_helper _cummin_helper _fused_sdp_choice _histogramdd_bin_edges
        _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _logcumsumexp _pin_memory
        _prelu_kernel _rowwise_prune _segment_reduce _shape_as_tensor
        _thnn_differentiable_gru_cell _thnn_differentiable_lstm_cell _thnn_fused_gru_cell
        _thnn_fused_lstm_cell _transform_bias_rescale_qkv _unique _unique2 _unsafe_view
        absolute addr all amax amin aminmax any arccos arccosh arcsin arcsinh arctan arctan2
        arctanh argmax argmin argsort bincount cartesian_prod chalf combinations complex
        cross cummax cummaxmin cummin cumprod cumsum cumulative_trapezoid diff divide elu
        expit fft_fftfreq fft_fftshift fft_ifftshift fft_rfftfreq fix floor_divide from_file
        ger glu glu_jvp gradient greater greater_equal hardshrink hardsigmoid hardswish
        hardtanh hash_tensor histc histogram histogramdd infinitely_differentiable_gelu
        isclose isin isreal kron kthvalue leaky_relu less less_equal linalg__powsum
        linalg_cross linalg_vander log_sigmoid log_sigmoid_forward logcumsumexp logsumexp
        lu_unpack mean median mish mode msort multiply nanmean nanmedian nansum ndtr
        negative not_equal outer polar powsum prelu prod psi rrelu_with_noise
        rrelu_with_noise_functional segment_reduce softplus softshrink sort std std_mean
        subtract sum trace trapezoid trapz unique_consecutive unique_dim_consecutive vander
        var var_mean
    """,
}

ZERO = frozenset(name for family in _FAMILIES.values() for name in family.split())
"""Base names of the operators that do no matrix product."""

_WITHOUT_FORMULA = """
    _cholesky_solve_helper _compute_linear_combination _convolution_double_backward
    _cslt_sparse_mm _cslt_sparse_mm_search _fft_c2c _fft_c2r _fft_r2c _linalg_det
    _linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex _linalg_svd _lu_with_info
    _sparse_addmm _sparse_mm _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward
    _sparse_semi_structured_addmm _sparse_semi_structured_mm
    _sparse_semi_structured_apply_dense _sparse_semi_structured_apply
    _sparse_semi_structured_tile _sparse_sparse_matmul _spsolve cholesky cholesky_inverse
    cholesky_solve det fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft
    fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn
    fft_rfft fft_rfft2 fft_rfftn geqrf hspmm inverse istft linalg_cholesky
    linalg_cholesky_ex linalg_cond linalg_det linalg_eig linalg_eigh linalg_eigvals
    linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor
    linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_factor
    linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_matrix_norm
    linalg_matrix_power linalg_matrix_rank linalg_norm linalg_pinv linalg_qr linalg_slogdet
    linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals
    linalg_tensorinv linalg_tensorsolve logdet lstm_mps_backward lu_solve matmul_backward
    matrix_exp matrix_exp_backward matrix_power nuclear_norm orgqr ormqr pinverse qr
    slogdet smm sparse_sampled_addmm sspaddmm stft svd
    triangular_solve
"""

WITHOUT_FORMULA = frozenset(_WITHOUT_FORMULA.split())
"""Operators known to multiply and add in ways that the shapes do not tell (sparse products),
or that are no matrix product (transforms, decompositions). They are reported by name."""

_QUIET_NAMESPACES = frozenset(
    {"prim", "profiler", "c10d", "_c10d_functional", "debugprims", "rngprims"}
)
"""Bookkeeping, communication and random numbers."""

_BACKWARD = re.compile(r"_backward(_data|_jvp|_elemt|_reduce|_impl)?$")


def does_no_product(operator: str) -> bool:
    """Whether an operator (``aten.relu_``, without overload) is known to do no product.

    In-place, copying, list-wise and backward variants count as what they vary.
    """
    namespace, _, name = operator.partition(".")
    if namespace in _QUIET_NAMESPACES:
        return True
    if name in ELSEWHERE.get(namespace, ()):
        return True
    return namespace in ("aten", "prims") and (name in ZERO or _base(name) in ZERO)


def _base(name: str) -> str:
    name = name.removeprefix("_foreach_").removeprefix("special_")
    if not name.endswith("__"):
        name = name.removesuffix("_")
    return _BACKWARD.sub("", name.removesuffix("_copy"))
