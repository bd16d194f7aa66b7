"""Equal calls that are not watched operator by operator are recorded as if they were."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from shapetrace.capture import record
from shapetrace.capture.recorder import events
from shapetrace.capture.recorder.assemble import UNSEEN
from shapetrace.cost import summarise
from shapetrace.model import ModelConfig, build
from tests.capture.models_under_test import CASES, Stack, rand

VARIANTS = [
    {},
    {"attention": "explicit", "positions": "rope", "h_kv": 2},
    {"norm_position": "post", "norm": "rmsnorm", "gated": True},
]


def comparable(trace):
    return dataclasses.replace(trace, wall_time=0.0)


def recorded(model, inputs, **options):
    torch.manual_seed(0)
    with torch.no_grad(), record(model, **options) as recording:
        model(*inputs)
    kinds = [event[0] for event in recording._recorder.events]
    return comparable(recording.trace), kinds.count(events.REPEAT), kinds.count(events.OP)


@pytest.mark.parametrize("case", CASES)
def test_the_trace_is_the_same_with_and_without_repeats(case):
    build_case, inputs = CASES[case]
    model = build_case().eval()
    plain, _, _ = recorded(model, inputs(), repeats=False)
    fast, _, _ = recorded(model, inputs())
    lost = [op for op in fast.ops if op.name == UNSEEN]
    if not lost:
        assert fast == plain
    assert [r.shape for r in fast.tensors] == [r.shape for r in plain.tensors]


@pytest.mark.parametrize("kind", ["tiny-encoder", "tiny-decoder", "tiny-encoder-decoder"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_our_own_models_repeat_their_layers(kind, variant):
    config = ModelConfig.from_preset(kind).replaced({"layers": 3, **variant})
    model = build(config).eval()
    ids = torch.randint(0, 200, (2, 7))
    inputs = (ids, ids[:, :5]) if config.kind == "encoder-decoder" else (ids,)
    plain, none, every = recorded(model, inputs, repeats=False)
    fast, repeats, watched = recorded(model, inputs)
    assert fast == plain
    assert none == 0
    assert repeats >= 2
    assert watched < every
    assert summarise(fast) == summarise(plain)


def test_a_call_that_hangs_on_values_is_always_watched():
    build_case, inputs = CASES["values"]
    _, repeats, _ = recorded(build_case().eval(), inputs())
    assert repeats == 0


def test_training_and_autograd_are_always_watched():
    model = Stack()
    with record(model) as recording:
        model(rand(2, 3, 8))
    assert all(event[0] != events.REPEAT for event in recording._recorder.events)


def test_a_call_that_turns_out_different_says_what_may_be_missing():
    build_case, inputs = CASES["alternating"]
    trace, _, _ = recorded(build_case().eval(), inputs())
    plain, _, _ = recorded(build_case().eval(), inputs(), repeats=False)
    assert [r.shape for r in trace.tensors] == [r.shape for r in plain.tensors]
    assert (UNSEEN, 1) in summarise(trace).unmodelled


def test_a_layer_that_knows_its_index_and_goes_another_way_is_seen():
    build_case, inputs = CASES["depth"]
    model = build_case().eval()
    plain, _, _ = recorded(model, inputs(), repeats=False)
    fast, _, _ = recorded(model, inputs())
    assert [r.shape for r in fast.tensors] == [r.shape for r in plain.tensors]
    assert fast.tensors[-1].shape == (2, 6, 4)


def test_modules_with_other_settings_are_not_equal():
    class Scaled(nn.Module):
        def __init__(self, heads):
            super().__init__()
            self.heads = heads
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            y = self.inner(x).unflatten(-1, (self.heads, -1))
            return (y @ y.transpose(-1, -2)).sum((-1, -2), keepdim=True).squeeze(-1) + x

    model = nn.Sequential(Scaled(4), Scaled(8), Scaled(4), Scaled(8)).eval()
    plain, _, _ = recorded(model, (rand(2, 8),), repeats=False)
    fast, repeats, _ = recorded(model, (rand(2, 8),))
    assert fast == plain
    assert repeats == 2


def test_the_peak_of_repeated_layers_is_that_of_watched_ones():
    model = Stack(width=16, depth=6).eval()
    plain, _, _ = recorded(model, (rand(2, 5, 16),), repeats=False)
    fast, repeats, _ = recorded(model, (rand(2, 5, 16),))
    assert repeats == 5
    assert fast.storages == plain.storages
