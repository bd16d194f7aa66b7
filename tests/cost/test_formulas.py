"""Formulas by themselves: closed forms of kernels that this machine cannot run, properties."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from shapetrace.cost import FORMULAS, flops, formula
from shapetrace.records.trace import OpRecord

sizes = st.integers(1, 64)


def op(name, *inputs, out=(), **attributes):
    return OpRecord(
        f"{name}.default", 0, 1, inputs, tuple(out), "float32", tuple(attributes.items())
    )


Q, K, V = (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)
FORWARD, BACKWARD = 2 * 2 * 4 * 5 * 7 * (8 + 6), 2 * 2 * 4 * 5 * 7 * (3 * 8 + 2 * 6)
LAST = [(x[0], x[2], x[1], x[3]) for x in (Q, K, V)]
OUT = (2, 4, 5, 6)
SDPA = "aten._scaled_dot_product_"


@pytest.mark.parametrize(
    "kernel",
    [
        "flash_attention",
        "flash_attention_for_cpu",
        "efficient_attention",
        "cudnn_attention",
        "fused_attention_overrideable",
    ],
)
def test_every_kernel_costs_the_same(kernel):
    assert flops(op(SDPA + kernel, Q, K, V, out=[OUT], is_causal=True)) == FORWARD
    assert flops(op(SDPA + kernel + "_backward", OUT, Q, K, V, OUT)) == BACKWARD


@pytest.mark.parametrize(
    "name", ["aten.scaled_dot_product_attention", "aten._scaled_dot_product_attention_math"]
)
def test_unfused_names_cost_the_same(name):
    assert flops(op(name, Q, K, V, None, out=[OUT])) == FORWARD


def test_attention_without_batch_and_with_broadcast_batch():
    assert flops(op("aten.scaled_dot_product_attention", (5, 8), (7, 8), (7, 6))) == 2 * 5 * 7 * 14
    assert (
        flops(op("aten.scaled_dot_product_attention", (1, 4, 5, 8), (3, 4, 7, 8), (3, 4, 7, 6)))
        == 2 * 12 * 5 * 7 * 14
    )


def test_positions_before_heads():
    lengths = {"max_q": 5, "max_k": 7}
    assert flops(op("aten._flash_attention_forward", *LAST, None, None, **lengths)) == FORWARD
    assert (
        flops(
            op("aten._flash_attention_backward", OUT, *LAST, OUT, (2, 4, 5), None, None, **lengths)
        )
        == BACKWARD
    )
    assert flops(op("aten._efficient_attention_forward", *LAST, None, None, None)) == FORWARD
    assert (
        flops(op("aten._efficient_attention_backward", OUT, *LAST, None, OUT, None, None))
        == BACKWARD
    )
    assert (
        flops(
            op(
                "aten._flash_attention_forward_no_dropout_inplace",
                OUT,
                *LAST,
                None,
                None,
                **lengths,
            )
        )
        == FORWARD
    )
    assert flops(op("aten._cudnn_attention_forward", Q, K, V, None, None, None)) == FORWARD


def test_packed_sequences_are_priced_only_when_the_shapes_tell_their_lengths():
    packed = [(10, 4, 8), (14, 2, 8), (14, 2, 6)]
    full = op("aten._flash_attention_forward", *packed, (3,), (3,), max_q=5, max_k=7)
    assert flops(full) == FORWARD
    assert flops(op("aten._flash_attention_forward", *packed, (3,), (3,), max_q=6, max_k=7)) is None
    one = op("aten._flash_attention_forward", *packed, (2,), (2,), max_q=10, max_k=14)
    assert flops(one) == 2 * 4 * 10 * 14 * (8 + 6)
    nested = [(1, *shape) for shape in packed]
    assert (
        flops(
            op(
                "aten._efficient_attention_forward",
                *nested,
                None,
                (3,),
                (3,),
                max_seqlen_q=5,
                max_seqlen_k=7,
            )
        )
        == FORWARD
    )
    assert flops(op("aten._cudnn_attention_forward", *packed, None, (3,), (3,))) is None


def test_cross_attention_on_the_fast_path():
    shapes = (2, 5, 8), (2, 7, 8), (2, 7, 8), (24, 8), (24,), (8, 8), (8,)
    projections = 2 * 2 * 8 * 8 * (5 + 7 + 7 + 5)
    assert (
        flops(op("aten._native_multi_head_attention", *shapes))
        == projections + 2 * 2 * 2 * 5 * 7 * 8
    )


def test_products_of_other_kinds():
    assert flops(op("aten._scaled_mm", (3, 4), (4, 5), (), (), out=[(3, 5)])) == 2 * 3 * 4 * 5
    assert (
        flops(op("aten._weight_int8pack_mm", (3, 4), (5, 4), (5,), out=[(3, 5)])) == 2 * 3 * 4 * 5
    )
    assert flops(op("aten.addbmm", (3, 5), (2, 3, 4), (2, 4, 5), out=[(3, 5)])) == 2 * 2 * 3 * 4 * 5
    assert (
        flops(op("aten._foreach_mm", (2, 3), (4, 5), (3, 6), (5, 7)))
        == 2 * 2 * 3 * 6 + 2 * 4 * 5 * 7
    )
    assert flops(op("aten._grouped_mm", (9, 4), (3, 4, 5), (3,), out=[(9, 5)])) == 2 * 9 * 4 * 5
    assert flops(op("aten._grouped_mm", (4, 9), (9, 5), (3,), out=[(3, 4, 5)])) == 2 * 9 * 4 * 5
    assert flops(op("aten.addmm_", (3, 5), (3, 4), (4, 5), out=[(3, 5)])) == 2 * 3 * 4 * 5
    backward = op("aten.linear_backward", (2, 3, 4), (2, 3, 5), (5, 4), output_mask=(1, 0, 1))
    assert flops(backward) == 2 * 6 * 4 * 5
    assert (
        flops(op("aten.conv_tbc", (7, 2, 3), (3, 3, 4), (4,), out=[(5, 2, 4)]))
        == 2 * 5 * 2 * 4 * 3 * 3
    )


def test_device_recurrent_layers():
    weights = [(24, 5), (24, 6), (24,), (24,)]
    forward = op("aten._cudnn_rnn", (3, 2, 5), *weights, None, (1, 2, 6), (1, 2, 6), None)
    backward = op(
        "aten._cudnn_rnn_backward", (6, 5), *weights, (99,), (1, 2, 6), (1, 2, 6), (6, 6), (6, 6)
    )
    assert flops(forward) == 2 * 6 * 24 * (5 + 6)
    assert flops(backward) == 2 * flops(forward)


def test_what_has_no_formula_is_none_and_what_does_no_product_is_zero():
    assert flops(op("aten.linalg_svd", (3, 3))) is None
    assert flops(op("torchvision.deform_conv2d", (3, 3))) is None
    assert flops(op("aten._sparse_mm", (3, 3), (3, 3), out=[(3, 3)])) is None
    for name in (
        "relu_",
        "view",
        "_foreach_add_",
        "gelu_backward",
        "special_erf",
        "t_copy",
        "embedding",
        "native_layer_norm",
        "_softmax",
        "cat",
        "__ilshift__",
    ):
        assert flops(op("aten." + name, (3, 3), out=[(3, 3)])) == 0, name


def test_a_formula_that_does_not_apply_is_none_and_never_zero():
    assert flops(op("aten.convolution", (2, 4, 9), (6, 4, 3), None, out=[(2, 6, 7)])) is None
    assert flops(op("aten.mm", (3, 4), out=[])) is None
    assert flops(op("aten.mm", None, (4, 5), out=[(3, 5)])) is None
    assert flops(op("aten.mm", (3, 4), (4, 5), out=[(3, 5)], layout="sparse_coo")) is None


def test_registering_twice_raises():
    with pytest.raises(ValueError, match=r"^aten\.mm has a formula already: product_of_first$"):
        formula("aten.mm")(lambda op: 0)
    assert FORMULAS["aten.mm"].__name__ == "product_of_first"


@given(sizes, sizes, sizes)
def test_doubling_any_axis_of_a_product_doubles_it(n, k, m):
    price = lambda n, k, m: flops(op("aten.mm", (n, k), (k, m), out=[(n, m)]))  # noqa: E731
    assert price(2 * n, k, m) == price(n, 2 * k, m) == price(n, k, 2 * m) == 2 * price(n, k, m)


@given(sizes, sizes, sizes, sizes, sizes, sizes)
def test_attention_grows_with_each_length_and_splits_over_widths(batch, heads, n, m, d_k, d_v):
    def price(n, m, d_k, d_v):
        lead = (batch, heads)
        return flops(
            op(
                "aten.scaled_dot_product_attention",
                (*lead, n, d_k),
                (*lead, m, d_k),
                (*lead, m, d_v),
            )
        )

    assert price(2 * n, m, d_k, d_v) == price(n, 2 * m, d_k, d_v) == 2 * price(n, m, d_k, d_v)
    assert price(n, m, d_k, 0) + price(n, m, 0, d_v) == price(n, m, d_k, d_v)


@given(sizes, sizes, sizes, sizes, st.booleans())
def test_convolution_with_a_kernel_of_one_is_a_linear(batch, channels, out, length, transposed):
    weight = (channels, out, 1) if transposed else (out, channels, 1)
    conv = op(
        "aten.convolution",
        (batch, channels, length),
        weight,
        None,
        out=[(batch, out, length)],
        transposed=transposed,
    )
    linear = op(
        "aten.linear", (batch, length, channels), (out, channels), None, out=[(batch, length, out)]
    )
    assert flops(conv) == flops(linear)
