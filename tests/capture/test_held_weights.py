"""Weights that are no plain parameter: made by the first call, packed, wrapped, sparse."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.cost import summarise

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def quantised(model, kinds, dtype=torch.qint8):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(model.eval(), kinds, dtype=dtype)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.ReLU())
        self.head = nn.LazyLinear(5)

    def forward(self, image):
        return self.head(self.body(image).flatten(1))


LAZY = {
    "a net": (Lazy, (2, 3, 12, 12), 3 * 9 * 8 + 8 + 2 * 8 + 800 * 5 + 5, 2 * 8 * 4 + 8),
    "bare": (lambda: nn.LazyLinear(4, bias=False), (2, 3, 6), 24, 0),
    "transposed": (lambda: nn.LazyConvTranspose1d(4, 3), (2, 6, 5), 6 * 4 * 3 + 4, 0),
    "norm": (lambda: nn.LazyInstanceNorm1d(affine=True), (2, 6, 5), 12, 2 * 6 * 4 + 8),
}


@pytest.mark.parametrize("case", LAZY)
def test_a_lazy_model_is_traced_and_its_parameters_counted(case):
    make, shape, parameters, buffers = LAZY[case]
    x = torch.randn(shape)
    plain, model = make(), make()
    torch.manual_seed(3)
    expected = plain(x)
    torch.manual_seed(3)
    traced = shapetrace.trace(model, x)
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), model.parameters(), strict=True)
    )
    found = summarise(traced)
    assert (found.parameters, found.parameter_bytes) == (parameters, 4 * parameters)
    assert found.buffer_bytes == buffers
    recorded = make()
    torch.manual_seed(3)
    with shapetrace.record(recorded) as recording:
        result = recorded(x)
    assert torch.equal(result, expected)
    assert summarise(recording.trace).parameters == parameters
    assert not [n for n in recording.trace.notes if "not probed" in n]


def test_a_lazy_models_weights_are_no_activations():
    model = nn.LazyLinear(1000)
    with torch.no_grad(), shapetrace.record(model) as recording:
        model(torch.ones(1, 10))
    kinds = {s.kind for s in recording.trace.storages if s.nbytes == 4 * 10 * 1000}
    assert "parameter" in kinds
    assert recording.trace.parameters[0].storage >= 0


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


QUANTISED = {
    "linear": (nn.Linear(16, 32), {nn.Linear}, (3, 16), 16 * 32 + 32, 16 * 32 + 4 * 32),
    "lstm": (nn.LSTM(4, 5), {nn.LSTM}, (3, 2, 4), 20 * 9 + 40, 20 * 9 + 4 * 40),
    "gru": (nn.GRU(4, 5), {nn.GRU}, (3, 2, 4), 15 * 9 + 30, 15 * 9 + 4 * 30),
}


@pytest.mark.parametrize("case", QUANTISED)
def test_packed_weights_are_counted_with_their_bytes(case):
    layer, kinds, shape, numbers, nbytes = QUANTISED[case]
    model = quantised(Recurrent(layer), kinds)
    x = torch.randn(shape)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        traced = shapetrace.trace(model, x)
        with shapetrace.record(model) as recording:
            result = model(x)
        expected = twin(x)
    first = [value[0] if isinstance(value, tuple) else value for value in (result, expected)]
    assert torch.equal(*first)
    for trace in (traced, recording.trace):
        found = summarise(trace)
        assert (found.parameters, found.parameter_bytes) == (numbers, nbytes)
        assert found.trainable_parameters == 0


def test_halves_are_packed_as_halves():
    model = quantised(nn.Sequential(nn.Linear(16, 32)), {nn.Linear}, torch.float16)
    with torch.no_grad():
        found = summarise(shapetrace.trace(model, torch.randn(3, 16)))
    assert (found.parameters, found.parameter_bytes) == (16 * 32 + 32, 2 * 16 * 32 + 4 * 32)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["trace", "check"])
def test_the_process_of_a_quantised_model_ends_well(command, tmp_path):
    file = tmp_path / "packed.py"
    file.write_text(
        "import torch, warnings\n"
        "from torch import nn\n"
        "def make(width=16):\n"
        "    net = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))\n"
        "    warnings.simplefilter('ignore')\n"
        "    return torch.ao.quantization.quantize_dynamic(net, {nn.Linear})\n"
    )
    arguments = [sys.executable, "-m", "shapetrace", command, f"{file}:make"]
    done = subprocess.run(
        [*arguments, "--input", "float32[B=3,8]"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if command == "trace":
        assert "names come from real runs (its packed weights need values)" in done.stdout
        assert "212" in done.stdout  # 8*16 + 16 + 16*4 + 4 numbers


def test_tensors_made_of_others_count_what_they_hold():
    from torch.testing._internal.two_tensor import TwoTensor  # noqa: PLC0415

    model = nn.Linear(8, 4, bias=False)
    model.weight = nn.Parameter(TwoTensor(torch.ones(4, 8), torch.ones(4, 8)), requires_grad=False)
    with torch.no_grad(), shapetrace.record(model) as recording:
        model(torch.ones(2, 8))
    assert summarise(recording.trace).parameters == 32
    assert summarise(recording.trace).parameter_bytes == 2 * 4 * 32


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_sparse_weights_count_their_indices(layout):
    dense = torch.eye(6)
    weight = dense.to_sparse() if layout == "sparse_coo" else dense.to_sparse_csr()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", weight)
            self.register_buffer("other", dense.to_sparse())

        def forward(self, x):
            return self.adjacency @ x

    with torch.no_grad(), shapetrace.record(Net()) as recording:
        pass
    own = 2 * 8 * 6 if layout == "sparse_coo" else 8 * 7 + 8 * 6
    assert summarise(recording.trace).buffer_bytes == own + 4 * 6 + 2 * 8 * 6 + 4 * 6
