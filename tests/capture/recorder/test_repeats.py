"""Equal calls that are not watched operator by operator are recorded as if they were."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode

import shapetrace.model.layers
from shapetrace.capture import record
from shapetrace.capture.recorder import events
from shapetrace.capture.recorder.assemble import UNSEEN
from shapetrace.cost import summarise
from shapetrace.model import ModelConfig, build
from tests.capture.models_under_test import CASES, Stack, rand
from tests.capture.recorder.equal_but_different import DIFFERENT

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


@pytest.mark.parametrize("case", [*CASES, *DIFFERENT])
def test_the_trace_is_the_same_with_and_without_repeats(case):
    build_case, inputs = {**CASES, **DIFFERENT}[case]
    plain, _, _ = recorded(build_case().eval(), inputs(), repeats=False)
    fast, _, _ = recorded(build_case().eval(), inputs())
    assert all(op.name != UNSEEN for op in fast.ops)
    assert fast == plain


def test_a_box_that_another_layer_fills_is_looked_into():
    # 4 layers: the product of (3, 4) with (4, 4), and with a box of (4, n + 1).
    model, x = DIFFERENT["a box"][0]().eval(), rand(3, 4)
    trace, _, _ = recorded(model, (x,))
    flops = sum(2 * 3 * 4 * 4 + 2 * 3 * 4 * (n + 1) for n in range(4))
    assert summarise(trace).flops == flops == 624


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


def own_model(**changes):
    torch.manual_seed(0)
    return build(ModelConfig.from_preset("tiny-decoder").replaced({"layers": 4, **changes})).eval()


IDS = torch.arange(14).reshape(2, 7)


def test_with_autograd_every_call_is_watched():
    model = own_model()
    with record(model) as recording:
        model(IDS)
    assert all(event[0] != events.REPEAT for event in recording._recorder.events)


def test_the_layers_of_others_are_watched_in_full():
    _, repeats, _ = recorded(Stack(width=16, depth=6).eval(), (rand(2, 5, 16),))
    assert repeats == 0


def dropping(model):
    model.blocks[2].feedforward.dropout = 0.5
    model.blocks[2].training = model.blocks[2].feedforward.training = True


def doubling(model):
    scale = []

    def activation(x):
        scale.append(x)
        return x if len(scale) == 3 else x.relu() + 1

    for block in model.blocks:
        block.feedforward.activation = activation


def hooked(model):
    def hook(_, args, output):
        return output @ output.transpose(-1, -2) @ output

    model.blocks[2].feedforward.register_forward_hook(hook)


def reparametrised(model):
    class Doubled(nn.Module):
        def forward(self, weight):
            return weight @ weight.T @ weight

    parametrize.register_parametrization(model.blocks[2].feedforward, "w_up", Doubled())


def another_attention(model):
    model.blocks[1].attention.attend = model.blocks[1].attention.attend_across


def subclassed(model):
    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            return result * 1 if func is torch.nn.functional.linear else result

    weight = model.blocks[2].feedforward.w_up
    weight.data = weight.data.as_subclass(Watched)
    model.blocks[2].feedforward._parameters["w_up"] = weight.data


def replaced_method(model):
    block = model.blocks[2]
    block.forward = lambda x, *_, **__: x + x


def while_it_runs(model):
    """The embedding changes a layer behind it, each time."""

    def hook(*_):
        model.blocks[2].feedforward.w_up.data = torch.zeros(64, 32).T.contiguous().T
        another_attention(model)

    model.embedding.register_forward_hook(hook)


CHANGES = [
    dropping,
    doubling,
    hooked,
    reparametrised,
    another_attention,
    subclassed,
    replaced_method,
    while_it_runs,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_layer_of_ours_that_someone_has_changed_is_watched(change):
    def changed():
        model = own_model()
        change(model)
        return model

    plain, _, _ = recorded(changed(), (IDS,), repeats=False)
    fast, _, _ = recorded(changed(), (IDS,))
    assert all(op.name != UNSEEN for op in fast.ops)
    assert fast == plain


def test_a_mode_that_sees_calls_or_a_hook_on_all_modules_keeps_every_call_watched():
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    model = own_model()
    with Mode():
        assert recorded(model, (IDS,))[1] == 0
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    assert recorded(model, (IDS,))[1] == 0
    handle.remove()
    assert recorded(model, (IDS,))[1] == 3


def test_an_equal_call_that_turns_out_different_says_what_may_be_missing():
    # Nothing that is known to be equal does this: code that only pretends to be a layer's.
    file = shapetrace.model.layers.__path__[0] + "/pretended.py"
    source = "def activation(x):\n    CALLS.append(x)\n    return x[:1] if len(CALLS) == 3 else x"
    names = {"CALLS": []}
    exec(compile(source, file, "exec"), names)
    model = own_model()
    for block in model.blocks:
        block.feedforward.activation = names["activation"]
    trace, repeats, _ = recorded(model, (IDS,))
    assert repeats
    assert (UNSEEN, 1) in summarise(trace).unmodelled
    assert next(r.shape for r in reversed(trace.tensors) if len(r.shape) == 3) == (2, 7, 256)
