"""FlopCounterMode, where it has the formula, and where it does not, a decomposition."""

import hypothesis.strategies as st
import pytest
import torch
import torch.nn.functional as F
from dispatched import recorded, total
from hypothesis import given, settings
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from shapetrace.cost import FORMULAS, flops
from shapetrace.cost.formulas.zero import WITHOUT_FORMULA, ZERO, does_no_product


def counted(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def training_step(model, *inputs):
    def step():
        out = model(*inputs)
        (out[0] if isinstance(out, tuple) else out).sum().backward()

    return step


MODELS = {
    "conv2d": (nn.Conv2d(4, 6, 3, stride=2, padding=1), (2, 4, 11, 9)),
    "conv2d, dilated": (nn.Conv2d(4, 6, 3, dilation=2, bias=False), (2, 4, 11, 9)),
    "conv3d": (nn.Conv3d(2, 3, 2), (1, 2, 4, 5, 6)),
    "conv, unbatched": (nn.Conv1d(3, 5, 2), (3, 8)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (2, 4, 5, 5)),
    "transposed 1-d": (nn.ConvTranspose1d(4, 6, 3, stride=2), (2, 4, 5)),
    "two convolutions": (
        nn.Sequential(nn.Conv1d(3, 5, 2), nn.ReLU(), nn.Conv1d(5, 4, 3)),
        (2, 3, 9),
    ),
    "mlp": (nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 3)), (2, 4, 6)),
    "gru": (nn.GRU(5, 6, num_layers=2), (4, 3, 5)),
    "rnn": (nn.RNN(5, 6), (4, 3, 5)),
    "embedding and norm": (
        nn.Sequential(nn.BatchNorm1d(6), nn.Softmax(-1), nn.Linear(6, 2)),
        (3, 6),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward_agree_with_flop_counter(name):
    model, shape = MODELS[name]
    step = training_step(model, torch.randn(*shape, requires_grad=name != "two convolutions"))
    assert total(step) == counted(step) > 0


def test_depthwise_convolution_by_hand():
    """FlopCounterMode forgets the groups in the weight's gradient: four times too much."""
    step = training_step(nn.Conv2d(4, 8, 3, groups=4), torch.randn(2, 4, 7, 7, requires_grad=True))
    assert total(step) == 3 * 2 * (2 * 8 * 5 * 5) * (1 * 3 * 3)
    assert counted(step) == (2 + 4) * 2 * (2 * 8 * 5 * 5) * (1 * 3 * 3)


@pytest.mark.parametrize("transposed", [False, True])
def test_grouped_transposed_convolution_by_hand(transposed):
    kind = nn.ConvTranspose1d if transposed else nn.Conv1d
    model, x = kind(4, 6, 3, groups=2), torch.randn(2, 4, 5, requires_grad=True)
    swept = 2 * 4 * 5 * (6 // 2) if transposed else 2 * 6 * 3 * (4 // 2)
    assert total(training_step(model, x)) == 3 * 2 * swept * 3


@pytest.mark.parametrize("enable_gqa", [False, True])
def test_fused_attention_backward_makes_the_scores_again(enable_gqa):
    q = torch.randn(2, 4, 5, 8, requires_grad=True)
    k, v = (torch.randn(2, 2 if enable_gqa else 4, 7, 8, requires_grad=True) for _ in range(2))
    step = lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=enable_gqa).sum().backward()  # noqa: E731
    assert total(step) == (2 + 5) * 2 * (2 * 4) * 5 * 7 * 8


EQUATIONS = [
    "ij,jk->ik",
    "ij,kj->ik",
    "bij,bjk->bik",
    "i,i->",
    "i,j->ij",
    "ij,ij->ij",
    "ij->ji",
    "ii->i",
    "abc,cd->",
    "...ij,...jk->...ik",
    "bhqe,bhke",
    "ij,jk,kl->il",
    "ij,jk,kl,lm->im",
    "bn,bnd,de,be->b",
    "abx,bcy,c->a",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_whole_einsum_equals_what_it_decomposes_to(equation):
    sizes = dict(zip("abcdehijklmnqxy", [2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 2, 3, 4, 5, 6], strict=True))
    terms = equation.partition("->")[0].replace("...", "ab").split(",")
    tensors = [torch.randn([sizes[label] for label in term]) for term in terms]
    expected = counted(lambda: torch.einsum(equation, *tensors))
    with torch.inference_mode():
        ops = recorded(lambda: torch.einsum(equation, *tensors))
    assert [op.name for op in ops] == ["aten.einsum.default"]
    assert flops(ops[0]) == expected


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_einsums_equal_what_they_decompose_to(data):
    labels = "abcde"
    sizes = {label: data.draw(st.integers(1, 4)) for label in labels}
    count = data.draw(st.integers(2, 4))
    terms = [
        "".join(data.draw(st.permutations(labels))[: data.draw(st.integers(1, 4))])
        for _ in range(count)
    ]
    used = sorted({label for term in terms for label in term})
    result = "".join(label for label in used if data.draw(st.booleans()))
    equation = f"{','.join(terms)}->{result}"
    tensors = [torch.randn([sizes[label] for label in term]) for term in terms]
    expected = counted(lambda: torch.einsum(equation, *tensors))
    with torch.inference_mode():
        assert total(lambda: torch.einsum(equation, *tensors)) == expected


COMPOSITES = {
    "bilinear": lambda: F.bilinear(torch.ones(3, 4), torch.ones(3, 5), torch.ones(6, 4, 5)),
    "tensordot": lambda: torch.tensordot(
        torch.ones(2, 3, 4), torch.ones(4, 3, 5), ([2, 1], [0, 1])
    ),
    "multi_dot": lambda: torch.linalg.multi_dot(
        [torch.ones(2, 9), torch.ones(9, 3), torch.ones(3, 8), torch.ones(8)]
    ),
    "inner": lambda: torch.inner(torch.ones(2, 3), torch.ones(4, 3)),
    "cov": lambda: torch.cov(torch.ones(3, 7)),
    "cdist": lambda: torch.cdist(torch.ones(40, 5), torch.ones(50, 5)),
    "cdist, few rows": lambda: torch.cdist(torch.ones(4, 5), torch.ones(5, 5)),
    "lstm cell": lambda: nn.LSTMCell(3, 4)(torch.ones(2, 3)),
    "gru cell": lambda: nn.GRUCell(3, 4)(torch.ones(2, 3)),
    "rnn cell": lambda: nn.RNNCell(3, 4)(torch.ones(3)),
    "packed lstm": lambda: nn.LSTM(3, 4, proj_size=2)(
        nn.utils.rnn.pack_sequence([torch.ones(3, 3), torch.ones(2, 3)])
    ),
    "gru": lambda: nn.GRU(3, 4, bidirectional=True)(torch.ones(5, 2, 3)),
    "conv, padding by name": lambda: F.conv1d(
        torch.ones(2, 3, 8), torch.ones(4, 3, 3), padding="same"
    ),
    "transposed": lambda: F.conv_transpose1d(torch.ones(2, 4, 5), torch.ones(4, 3, 3)),
    "attention, math": lambda: torch.ops.aten._scaled_dot_product_attention_math(
        *[torch.ones(2, 3, 4, 5)] * 3
    ),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_cost_the_same_whole_and_in_parts(name):
    in_parts = total(COMPOSITES[name])
    with torch.inference_mode():
        assert total(COMPOSITES[name]) == in_parts
    assert in_parts > 0 or name == "cdist, few rows"


def test_bilinear_closed_form():
    assert total(COMPOSITES["bilinear"]) == 2 * 3 * 6 * 4 * 5 + 2 * 3 * 6 * 5


def test_lstm_backward_is_twice_its_forward():
    model, x = nn.LSTM(5, 6), torch.randn(3, 2, 5, requires_grad=True)
    assert total(training_step(model, x)) == 3 * 2 * (3 * 2) * 24 * (5 + 6)


def test_every_operator_of_torch_is_classified_once():
    """Formula, no product, or known to have no formula; a newer torch may add a few."""
    names = {
        n.partition("::")[2].split(".")[0]
        for n in torch._C._dispatch_get_all_op_names()
        if n.startswith("aten::")
    }
    names -= {name for name in names if name.startswith(("_test_", "_foobar"))}
    unknown = []
    for name in sorted(names):
        classes = [
            f"aten.{name}" in FORMULAS or f"aten.{name.removesuffix('_')}" in FORMULAS,
            does_no_product(f"aten.{name}"),
            name in WITHOUT_FORMULA,
        ]
        assert sum(classes) <= 1, (
            f"aten.{name} is in several tables: with a formula it goes out of ZERO and of "
            "WITHOUT_FORMULA in shapetrace/cost/formulas/zero.py"
        )
        unknown += [name] if not any(classes) else []
    assert len(unknown) <= 20, (
        f"{unknown}: in no table; write a formula for those that make products, under "
        "@formula in shapetrace/cost/formulas/, and list the others in zero.py there: in ZERO "
        "if they make none, in WITHOUT_FORMULA if nobody knows"
    )
    assert len(names) > 1000
    assert not ZERO & WITHOUT_FORMULA


def test_torchs_own_formulas_are_covered():
    covered = {str(packet) for packet in flop_registry if str(packet).startswith("aten.")}
    assert covered - set(FORMULAS) <= {"aten._cudnn_convolution"}


def test_no_pointwise_operator_has_a_price():
    for operator in FORMULAS:
        namespace, name = operator.split(".")
        packet = getattr(getattr(torch.ops, namespace), name, None) if namespace == "aten" else None
        overloads = packet.overloads() if packet is not None else []
        assert not any(torch.Tag.pointwise in getattr(packet, o).tags for o in overloads), operator
