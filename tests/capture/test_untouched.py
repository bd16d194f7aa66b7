"""A trace leaves the model, the outputs and torch as they would have been without it."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import types

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from shapetrace.capture import record
from shapetrace.errors import ShapetraceError
from tests.capture.models_under_test import CASES, Answers, Stack, rand


def tensors_of(value):
    if isinstance(value, Answers | dict | list | tuple):
        return [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
    if hasattr(value, "__dataclass_fields__"):
        return tensors_of([getattr(value, name) for name in value.__dataclass_fields__])
    return [value] if isinstance(value, torch.Tensor) else []


def codes():
    """Every function and its code; quietly, or the collector looks at all of it time and again."""
    gc.disable()
    try:
        found = [thing for thing in gc.get_objects() if type(thing) is types.FunctionType]
        return [(function, function.__code__) for function in found]
    finally:
        gc.enable()


def state():
    return (
        torch.get_rng_state().tolist(),
        torch._C._len_torch_dispatch_stack(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.backends.mha.get_fastpath_enabled(),
        len(torch.nn.modules.module._global_forward_hooks),
        sys.getprofile(),
    )


@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_equal_to_the_bit_and_nothing_is_left(case, mode, grad):
    build, inputs = CASES[case]
    torch.manual_seed(1)
    model = build()
    model.train(mode == "train")
    twin = copy.deepcopy(model)
    with torch.set_grad_enabled(grad):
        torch.manual_seed(2)
        expected = twin(*inputs())
        after_plain = state()
        before = codes()
        torch.manual_seed(2)
        with record(model) as recording:
            actual = model(*inputs())
    with torch.set_grad_enabled(grad):
        assert state() == after_plain
    assert recording.trace.tensors
    assert [t.shape for t in tensors_of(actual)] == [t.shape for t in tensors_of(expected)]
    for one, other in zip(tensors_of(actual), tensors_of(expected), strict=True):
        assert torch.equal(one, other)
        assert one.requires_grad == other.requires_grad
    assert all(function.__code__ is code for function, code in before)
    for one, other in zip(model.modules(), twin.modules(), strict=True):
        assert one.training == other.training
        assert {k for k, v in vars(one).items() if k.endswith("hooks") and v} == set()
    assert all(p.grad is None for p in model.parameters())


def test_a_closure_made_during_the_trace_gets_its_own_code_back():
    build, inputs = CASES["closures"]
    model = build()
    with record(model):
        model(*inputs())
    assert not any("shapetrace" in repr(c) or callable(c) for c in model.later.__code__.co_consts)
    assert torch.equal(model.later(torch.ones(2)), torch.full((2,), 2.0))


class Failing(nn.Module):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        y = self.inner(x)
        return self.fail(y)

    def fail(self, y):
        z = y * 2
        if z.numel():
            raise self.error
        return z


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_everything_is_put_back_when_the_model_raises(error):
    model = Failing(error)
    forward, fail = Failing.forward.__code__, Failing.fail.__code__
    before = state()
    recording = record(model)
    with pytest.raises(type(error)) as caught, recording:
        model(rand(2, 4))
    assert caught.value is error
    assert state() == before
    assert Failing.forward.__code__ is forward
    assert Failing.fail.__code__ is fail
    trace = recording.trace
    assert trace.failure is not None
    assert trace.failure.type_name == type(error).__name__
    assert trace.failure.file == __file__
    assert trace.scopes[trace.failure.scope].type_name == "Failing.fail"
    assert [trace.sites[r.site].name for r in trace.tensors][-1] == "z"
    with record(model):  # and another trace can start
        pass


def test_gradients_are_those_of_an_untraced_step():
    torch.manual_seed(0)
    model = Stack()
    twin = copy.deepcopy(model)
    x = rand(2, 3, 8)
    twin(x).square().sum().backward()
    with record(model) as recording:
        model(x).square().sum().backward()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    assert {op.phase for op in recording.trace.ops} == {"forward", "backward"}


def test_a_trace_inside_a_trace_is_refused_in_one_line():
    model = Stack()
    with record(model) as outer:
        with (
            pytest.raises(ShapetraceError, match="another trace is running") as caught,
            record(model),
        ):
            pass
        model(rand(2, 3, 8))
    assert "\n" not in str(caught.value)
    assert outer.trace.tensors


def test_a_second_thread_runs_untraced_and_unharmed():
    model, x = Stack(), rand(2, 3, 8)
    with torch.no_grad():
        expected = model(x)
        results = []
        with record(model) as recording:
            model(x)
            thread = threading.Thread(target=lambda: results.append(model(x)))
            thread.start()
            thread.join()
        with record(model) as alone:
            model(x)
    assert torch.equal(results[0], expected)
    assert len(recording.trace.tensors) == len(alone.trace.tensors)


def tensors_alive():
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def test_no_tensor_is_kept_alive():
    model, x = Stack(depth=3), rand(2, 3, 8)
    before = tensors_alive()
    recording = record(model)
    with torch.no_grad(), recording:
        model(x)
    assert tensors_alive() == before
    trace = recording.trace
    del recording
    assert tensors_alive() == before
    assert trace.tensors
