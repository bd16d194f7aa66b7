"""The small cases that every other counter gets wrong somewhere, against closed forms.

Each on CPU and on meta, with gradients, without, and under inference mode, where torch
leaves composite operators whole.
"""

import pytest
import torch
import torch.nn.functional as F
from dispatched import recorded, total
from torch import nn

B, N, M, H, H_KV, E, E_V, D, D_FF, L = 2, 5, 7, 4, 2, 8, 6, 16, 32, 9


def linear_3d(make):
    layer, x = nn.Linear(6, 7), make(2, 3, 6)
    return lambda: layer(x)


def linear_1d(make):
    layer, x = nn.Linear(6, 7), make(6)
    return lambda: layer(x)


def matrix_times_vector(make):
    w, x = make(5, 6), make(6)
    return lambda: w @ x


def einsum_scores(make):
    q, k = make(B, H, N, E), make(B, H, M, E)
    return lambda: torch.einsum("bhqe,bhke->bhqk", q, k)


def einsum_projection(make):
    x, w = make(B, N, D), make(D, H, E)
    return lambda: torch.einsum("bnd,dhe->bnhe", x, w)


def attention(n=N, h_kv=H, e_v=E, **options):
    def build(make):
        q, k, v = make(B, H, n, E), make(B, h_kv, M, E), make(B, h_kv, M, e_v)
        return lambda: F.scaled_dot_product_attention(q, k, v, **options)

    return build


def multi_head_attention(make):
    layer, x = nn.MultiheadAttention(D, H, batch_first=True).eval(), make(B, N, D)
    return lambda: layer(x, x, x, need_weights=False)


def encoder_layer(make):
    layer = nn.TransformerEncoderLayer(D, H, D_FF, batch_first=True).eval()
    x = make(B, N, D)
    return lambda: layer(x)


def lstm(make):
    layer, x = nn.LSTM(5, 6, num_layers=2, bidirectional=True).eval(), make(L, B, 5)
    return lambda: layer(x)


def conv1d(make):
    layer, x = nn.Conv1d(4, 6, 3, groups=2), make(B, 4, L)
    return lambda: layer(x)


def linear_bf16(make):
    layer, x = nn.Linear(6, 7, dtype=torch.bfloat16), make(2, 3, 6).to(torch.bfloat16)
    return lambda: layer(x)


def shared_linear(make):
    layer, x = nn.Linear(6, 6), make(2, 3, 6)
    return lambda: layer(layer(x))


ATTENTION = 2 * B * H * N * M * 2 * E
LAYER_OF_D = 2 * B * N * D * D
MULTI_HEAD = 4 * LAYER_OF_D + 2 * (2 * B * N * N * D)
CASES = {
    "linear on 3-d input": (linear_3d, 2 * 2 * 3 * 6 * 7),
    "linear on 1-d input": (linear_1d, 2 * 6 * 7),
    "matrix times vector": (matrix_times_vector, 2 * 5 * 6),
    "einsum bhqe,bhke": (einsum_scores, 2 * B * H * N * M * E),
    "einsum bnd,dhe": (einsum_projection, 2 * B * N * D * H * E),
    "attention": (attention(), ATTENTION),
    "attention, one query": (attention(n=1), ATTENTION // N),
    "attention, other value width": (attention(e_v=E_V), 2 * B * H * N * M * (E + E_V)),
    "attention, grouped": (attention(h_kv=H_KV, enable_gqa=True), ATTENTION),
    "attention, grouped, causal": (
        attention(h_kv=H_KV, enable_gqa=True, is_causal=True),
        ATTENTION,
    ),
    "nn.MultiheadAttention": (multi_head_attention, MULTI_HEAD),
    "nn.TransformerEncoderLayer": (encoder_layer, MULTI_HEAD + 2 * (2 * B * N * D * D_FF)),
    "nn.LSTM": (lstm, 2 * L * B * 24 * 2 * ((5 + 6) + (12 + 6))),
    "conv1d": (conv1d, 2 * B * 6 * (L - 2) * 2 * 3),
    "linear in bf16": (linear_bf16, 2 * 2 * 3 * 6 * 7),
    "one linear used twice": (shared_linear, 2 * (2 * 2 * 3 * 6 * 6)),
}
MODES = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_closed_form(case, device, mode):
    build, expected = CASES[case]
    with MODES[mode]():
        with torch.device(device):
            function = build(torch.randn)
        assert total(function) == expected


def test_there_are_sixteen():
    assert len(CASES) == 16


@pytest.mark.parametrize("need_weights", [True, False])
def test_fast_paths_run_as_one_operator(need_weights):
    """What makes the fused cases above worth having."""
    attention = nn.MultiheadAttention(D, H, batch_first=True).eval()
    layer, x = nn.TransformerEncoderLayer(D, H, D_FF, batch_first=True).eval(), torch.randn(B, N, D)
    with torch.no_grad():
        ops = recorded(lambda: (attention(x, x, x, need_weights=need_weights), layer(x)))
    assert [op.name for op in ops] == [
        "aten._native_multi_head_attention.default",
        "aten._transformer_encoder_layer_fwd.default",
    ]
