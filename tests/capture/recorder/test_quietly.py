"""A model's own modes and tensor classes see what they see untraced: no read of the tracer's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from shapetrace.capture import record
from tests.capture.models_under_test import CASES, rand

SEEN: list[str] = []


class Calls(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        SEEN.append(getattr(func, "__qualname__", str(func)))
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


class Watched(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append(getattr(func, "__qualname__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def seen(run):
    SEEN.clear()
    torch.manual_seed(0)
    run()
    return list(SEEN)


@pytest.mark.parametrize("mode", [Calls, Operators])
@pytest.mark.parametrize("case", CASES)
def test_a_mode_sees_what_it_sees_untraced(case, mode):
    build, make_inputs = CASES[case]
    model, inputs = build(), make_inputs()

    def inside():
        for parameter in model.parameters():
            parameter.grad = None
        with mode():
            result = model(*inputs)
            if isinstance(result, torch.Tensor) and result.requires_grad:
                result.sum().backward()

    def recorded():
        with record(model) as recording:
            inside()
        assert recording.trace.ops

    def around():
        with mode():
            recorded_inside()

    def recorded_inside():
        with record(model) as recording:
            model(*inputs)
        assert recording.trace.ops

    def plainly_inside():
        with mode():
            model(*inputs)

    assert seen(recorded) == seen(inside)
    assert seen(around) == seen(plainly_inside)


@pytest.mark.parametrize("case", CASES)
def test_a_tensor_class_sees_what_it_sees_untraced(case):
    build, make_inputs = CASES[case]
    model = build()
    inputs = tree_map_only(torch.Tensor, lambda t: t.as_subclass(Watched), make_inputs())

    def recorded():
        with record(model) as recording:
            model(*inputs)
        assert recording.trace.tensors

    assert seen(recorded) == seen(lambda: model(*inputs))


def test_a_mode_sees_nothing_of_why_a_model_failed():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            with Calls():
                y = self.inner(x)
                return y @ x

    def run():
        with pytest.raises(RuntimeError):
            model(rand(2, 4))

    def recorded():
        with pytest.raises(RuntimeError), record(model) as recording:
            model(rand(2, 4))
        assert recording.trace.failure.operands

    model = Broken()
    assert seen(recorded) == seen(run)
