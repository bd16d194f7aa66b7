"""Steps that lie on a line are left out while they come, and nothing is lost by it."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from shapetrace.api.transformer.generate_run import STEPS, flops_by_step
from shapetrace.api.transformer.generation import generate
from shapetrace.capture.record_steps import StepRecording
from shapetrace.capture.recording import Recording
from shapetrace.cost import summarise
from shapetrace.records.folds import expand
from shapetrace.records.storage import dumps


def clockless(trace):
    """All but the clocks: a recording of steps has one more tick for each."""
    return (
        [replace(t, at=0, since=0) for t in trace.tensors],
        [replace(op, at=0) for op in trace.ops],
        [replace(s, start=0, end=0) for s in trace.scopes],
        [replace(s, born=0, died=None) for s in trace.storages],
        [s.died is None for s in trace.storages],
    )


class Growing(nn.Module):
    """Each step makes its state one longer; every fifth takes another way."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, state, odd):
        new = self.linear(state[-1:])
        if odd:
            new = new.relu()
        return torch.cat([state, new])


@pytest.mark.parametrize("period", [100, 5, 1])
def test_expanded_is_what_an_unfolded_recording_has(period):
    torch.manual_seed(0)
    model = Growing()

    def run(recording):
        with torch.no_grad(), recording:
            state = torch.zeros(2, 4)
            for step in range(12):
                if isinstance(recording, StepRecording):
                    recording.step()
                state = model(state, step % period == period - 1)
            if isinstance(recording, StepRecording):
                recording.step()
        return recording.trace

    plain, folded = run(Recording(model)), run(StepRecording(model))
    assert clockless(expand(folded)) == clockless(plain)
    assert bool(folded.folds) == (period != 5 or len(folded.tensors) < len(plain.tensors))
    assert summarise(expand(folded)) == replace(
        summarise(plain), peak_activations=summarise(expand(folded)).peak_activations
    )
    assert summarise(expand(folded)).peak_activation_bytes == summarise(plain).peak_activation_bytes


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("config", ["tiny-decoder", "tiny-encoder-decoder"])
def test_a_generation_s_steps_are_all_there(config, attention):
    made = generate(config, ["dog bites"], max_new_tokens=14, trace=True, attention=attention)
    whole = expand(made.trace)
    assert len(whole.tensors) > len(made.trace.tensors)
    calls = [scope for scope in whole.scopes if scope.path in STEPS]
    assert len(calls) == len(made.passes)
    ms = [
        {t.shape[2] for t in whole.tensors if whole.sites[t.site].name == "k"
         and whole.scopes[t.scope].path.endswith(".attention.continued()")
         and call.start < t.at < call.end}
        for call in calls if call.path == "advance()"
    ]  # fmt: skip
    assert ms == [{step.m} for step in made.passes if step.kind != "encode"]
    assert sum(flops_by_step(made.trace)) == summarise(whole).flops
    assert flops_by_step(made.trace) == flops_by_step(whole)


def deep_size(value, seen):
    if id(value) in seen:
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, tuple | list):
        return size + sum(deep_size(item, seen) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return size + sum(deep_size(getattr(value, name), seen) for name in value.__slots__)
    return size


@pytest.mark.slow
def test_a_thousand_tokens_take_little_room():
    made = generate(
        "tiny-decoder", ["a"], max_new_tokens=1000, trace=True, settings=["max_positions=1001"]
    )
    assert len(made.passes) == 1000
    assert len(dumps(made.trace)) < 200_000
    assert deep_size(made.trace, set()) < 5_000_000
    sizes = [step.flops for step in made.passes]
    d = 32
    for step, cost in zip(made.passes[1:], sizes[1:], strict=True):
        # q, k, v, output and two feed-forward matrices of two layers; scores and values; head.
        wanted = 2 * (2 * (4 * d * d + 2 * d * 64) + 4 * step.m * d) + 2 * d * 256
        assert cost == wanted


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("config", ["tiny-decoder", "tiny-encoder-decoder"])
def test_every_tensor_of_a_generation_is_declared_and_holds(config, cache):
    made = generate(
        config,
        ["dog bites", "cat"],
        max_new_tokens=4,
        trace=True,
        temperature=1.0,
        top_k=9,
        top_p=0.9,
        cache=cache,
        settings=["positions=rope", "h_kv=2"],
    )
    assert made.trace.tensors
    for tensor in made.trace.tensors:
        site = made.trace.sites[tensor.site]
        assert tensor.declared is not None, (site.function, site.name, tensor.element)
        assert tensor.holds, (site.function, site.name, tensor.shape, tensor.declared.text)
