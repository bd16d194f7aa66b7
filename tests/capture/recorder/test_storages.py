"""Memory by storage: what is alive at once, and what shares a block."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from shapetrace.capture import record
from shapetrace.cost import summarise
from shapetrace.model import ModelConfig, build
from tests.capture.models_under_test import rand

MIB = 2**20


def gpt2_trace(device, attention):
    config = ModelConfig.from_preset("gpt2").replaced({"attention": attention})
    model = build(config, device=device).eval()
    ids = torch.zeros(2, 128, dtype=torch.long, device=device)
    quiet = torch.inference_mode() if device == "meta" else torch.no_grad()
    with quiet, record(model) as recording:
        model(ids)
    return recording.trace


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_gpt2_peaks_at_its_logits_and_little_else(device):
    total = summarise(gpt2_trace(device, "fused"))
    logits, last = 2 * 128 * 50257 * 4, 2 * 128 * 768 * 4
    assert logits + last <= total.peak_activation_bytes <= logits + last + 2048
    assert round(total.peak_activation_bytes / MIB, 1) == 49.8
    assert total.flops == 64_456_359_936
    assert total.parameters == 124_439_808


class Steps(nn.Module):
    def forward(self, x):
        a = x + 1  # 1: a
        b = a * 2  # 2: a, b
        del a  # 1: b
        view = b[:, :1].t()  # b's own block
        c = torch.cat([b, b])  # 3: b, c twice as large
        return c.sum() + view.sum()


def test_the_peak_counts_each_block_once_and_only_while_it_lives():
    x = rand(8, 16)
    with torch.no_grad(), record(Steps()) as recording:
        Steps()(x)
    trace = recording.trace
    size = x.nbytes
    scalars = 3 * 4  # the two sums and their sum, made while c lives
    assert summarise(trace).peak_activation_bytes == 3 * size + scalars
    by_name = {trace.sites[r.site].name: r for r in trace.tensors}
    assert by_name["view"].storage == by_name["b"].storage != by_name["a"].storage
    assert by_name["view"].nbytes == 8 * 4
    given = trace.storages[by_name["x"].storage]
    assert (given.kind, given.born, given.died) == ("input", 0, None)


class TiedHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(4))

    def forward(self, ids):
        return self.head(self.embedding(ids) * self.scale)


class Table(nn.Module):
    """Reads a part of a tensor that is neither parameter nor buffer."""

    def __init__(self):
        super().__init__()
        self.table = torch.zeros(100_000, 4)

    def forward(self, x):
        part = self.table[:2]
        return x + part


def test_a_view_of_what_was_there_before_is_no_activation():
    table, x = Table(), torch.ones(2, 4)
    with record(table) as recording:
        table(x)
    assert summarise(recording.trace).peak_activation_bytes == 2 * 4 * 4
    data = torch.zeros(100_000, 4)
    model = nn.Linear(4, 4)
    with torch.no_grad(), record(model) as recording:
        first = data[:2]
        model(first)
    assert summarise(recording.trace).peak_activation_bytes == 2 * 4 * 4
    made = record(model)
    with torch.no_grad(), made:
        rows = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        model(rows)
    assert (
        summarise(made.trace).peak_activation_bytes == 2 * 4 * 4
    )  # what is made in the run does count


def test_tied_parameters_are_one_storage_under_two_names():
    model = TiedHead()
    with torch.no_grad(), record(model) as recording:
        model(torch.zeros(1, 3, dtype=torch.long))
    trace = recording.trace
    paths = {p.path: p for p in trace.parameters}
    assert paths["embedding.weight"].storage == paths["head.weight"].storage
    assert paths["scale"].buffer
    total = summarise(trace)
    assert (total.parameters, total.parameter_bytes, total.buffer_bytes) == (40, 160, 16)


def test_memory_of_a_training_step_is_released_by_the_backward():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    x = rand(4, 8)
    with record(model) as recording:
        model(x).sum().backward()
    activations = [s for s in recording.trace.storages if s.kind == "activation"]
    assert len(activations) > 5
    assert sum(s.died is None for s in activations) <= 4  # the gradients of four parameters
