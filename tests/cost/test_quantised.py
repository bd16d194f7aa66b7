"""Quantised layers do the products of the layers that they stand for."""

from __future__ import annotations

import warnings

import pytest
import torch
from dispatched import recorded, total
from torch import nn

from shapetrace.cost import flops

pytestmark = pytest.mark.filterwarnings("ignore")
aq = torch.ao.quantization


def static(layer, x):
    model = nn.Sequential(aq.QuantStub(), layer, aq.DeQuantStub()).eval()
    model.qconfig = aq.get_default_qconfig("fbgemm")
    if "Transpose" in type(layer).__name__:
        model.qconfig = aq.QConfig(aq.default_observer, aq.default_weight_observer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = aq.prepare(model)
        prepared(x)
        return aq.convert(prepared)


CONVOLUTIONS = {
    "1d": (nn.Conv1d(4, 6, 3), (2, 4, 9), 2 * 2 * 6 * 7 * 4 * 3),
    "2d grouped": (nn.Conv2d(4, 6, (3, 2), groups=2), (2, 4, 9, 8), 2 * 2 * 6 * 7 * 7 * 2 * 6),
    "2d strided": (nn.Conv2d(3, 5, 3, 2, 1), (1, 3, 8, 8), 2 * 5 * 4 * 4 * 3 * 9),
    "3d": (nn.Conv3d(2, 4, 2), (1, 2, 4, 4, 4), 2 * 4 * 27 * 2 * 8),
    "transposed": (nn.ConvTranspose2d(4, 6, 3), (2, 4, 5, 5), 2 * 2 * 4 * 25 * 6 * 9),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case):
    layer, shape, expected = CONVOLUTIONS[case]
    x = torch.randn(shape)
    model = static(layer, x)
    assert total(lambda: model(x)) == expected


def dynamic(layer):
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, *given):
            return self.layer(*given)

    kinds = {nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell, nn.Linear}
    return aq.quantize_dynamic(Holder().eval(), kinds)


RECURRENT = {
    "lstm": (lambda: nn.LSTM(4, 5), (7, 2, 4), 2 * 14 * 20 * 9),
    "two layers": (lambda: nn.LSTM(4, 5, 2), (7, 2, 4), 2 * 14 * 20 * (9 + 10)),
    "both ways": (
        lambda: nn.LSTM(4, 5, 2, bidirectional=True),
        (7, 2, 4),
        2 * 14 * 2 * 20 * (9 + 15),
    ),
    "gru": (lambda: nn.GRU(4, 5, batch_first=True), (2, 7, 4), 2 * 14 * 15 * 9),
    "lstm cell": (lambda: nn.LSTMCell(4, 5), (3, 4), 2 * 3 * 20 * 9),
    "gru cell": (lambda: nn.GRUCell(4, 5), (3, 4), 2 * 3 * 15 * 9),
    "rnn cell": (lambda: nn.RNNCell(4, 5), (3, 4), 2 * 3 * 5 * 9),
}


@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent_layers(case):
    make, shape, expected = RECURRENT[case]
    model, x = dynamic(make()), torch.randn(shape)
    with torch.no_grad():
        assert total(lambda: model(x)) == expected


def test_packed_sequences():
    model = dynamic(nn.LSTM(4, 5))
    packed = nn.utils.rnn.pack_sequence([torch.randn(5, 4), torch.randn(3, 4)])
    with torch.no_grad():
        assert total(lambda: model(packed)) == 2 * 8 * 20 * 9


def test_halves():
    model = aq.quantize_dynamic(nn.Sequential(nn.Linear(8, 6)), {nn.Linear}, torch.float16)
    x = torch.randn(3, 8)
    with torch.no_grad():
        assert total(lambda: model(x)) == 2 * 3 * 8 * 6


def test_what_is_elementwise_on_quantised_values_costs_nothing():
    x = torch.quantize_per_tensor(torch.randn(2, 4, 6, 6), 0.1, 10, torch.quint8)
    both = torch.ops.quantized

    def run():
        both.add(x, x, 0.1, 10)
        both.mul(x, x, 0.1, 10)
        both.cat([x, x], 1, 0.1, 10)
        both.hardswish(x, 0.1, 10)
        nn.functional.max_pool2d(x, 2)
        x.relu().dequantize()

    assert total(run) == 0


def test_nested_views_and_copies_cost_nothing_and_products_are_not_guessed():
    rows = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
    assert total(lambda: (rows * 2, rows.relu(), rows.clone(), rows.to_padded_tensor(0.0))) == 0
    layer = nn.Linear(4, 6)
    with torch.no_grad():
        costs = [flops(op) for op in recorded(lambda: layer(rows))]
    assert None in costs or sum(costs) == 2 * 5 * 4 * 6
