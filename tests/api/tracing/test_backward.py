"""The backward pass of any model: its work, its memory, and gradients that stay as they were."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import shapetrace
from shapetrace.errors import ShapetraceError


class MLP(nn.Module):
    def __init__(self, again=None):
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 5)
        self.again = again

    def block(self, x):
        hidden = self.up(x).relu()
        return self.down(hidden)

    def forward(self, x):
        if self.again is None:
            return self.block(x)
        return checkpoint(self.block, x, use_reentrant=self.again)


@dataclass
class Scored:
    loss: torch.Tensor | None
    logits: torch.Tensor


class WithLoss(MLP):
    def forward(self, x, scored=True):
        logits = self.block(x)
        return Scored(logits.square().mean() if scored else None, logits)


class Detached(MLP):
    def forward(self, x):
        return self.block(x).detach()


class Chosen(MLP):
    def forward(self, x):
        return self.block(x).argmax(-1)


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no way back")


class OneWay(MLP):
    def forward(self, x):
        return Fails.apply(self.block(x))


def totals(traced):
    return traced.to_dict()["totals"]


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("again", [None, False])
def test_work_is_what_torch_counts(again, wanted):
    model, x = MLP(again), torch.randn(2, 3, 8, requires_grad=wanted)
    with FlopCounterMode(display=False) as forward:
        out = model(x)
    with FlopCounterMode(display=False) as back:
        out.sum().backward()
    found = totals(shapetrace.trace(model, x, backward=True))
    assert found["flops_forward"] == forward.get_total_flops()
    assert found["flops_backward"] == back.get_total_flops() > 0


@pytest.mark.parametrize("again", [None, False, True])
@pytest.mark.parametrize("before", [False, True])
def test_gradients_are_those_of_before(again, before):
    model, x = MLP(again), torch.randn(2, 8, requires_grad=True)
    if before:
        model(x).sum().backward()
    kept = [(t, t.grad, None if t.grad is None else t.grad.clone()) for t in leaves(model, x)]
    with torch.no_grad():
        traced = shapetrace.trace(model, x, backward=True)
        assert not torch.is_grad_enabled()
    training = traced.to_dict()["training"]
    assert training["gradient_bytes"] >= training["parameter_bytes"]
    assert all(p["gradient_shape"] == p["shape"] for p in training["parameters"])
    for tensor, gradient, values in kept:
        assert tensor.grad is gradient
        assert gradient is None or torch.equal(gradient, values)


def leaves(model, x):
    return [*model.parameters(), x]


def test_gradients_are_those_of_before_where_the_pass_fails():
    model, x = OneWay(), torch.randn(2, 8, requires_grad=True)
    for tensor in leaves(model, x):
        tensor.grad = torch.ones_like(tensor)
    kept = [tensor.grad for tensor in leaves(model, x)]
    with pytest.raises(ValueError, match="no way back"):
        shapetrace.trace(model, x, backward=True)
    assert all(t.grad is gradient for t, gradient in zip(leaves(model, x), kept, strict=True))


@pytest.mark.parametrize(
    ("model", "options", "note"),
    [
        (WithLoss(), {}, "backward pass from the output's .loss"),
        (WithLoss(), {"scored": False}, "the sum of the output: this is no loss of the model's"),
        (MLP(), {}, "the sum of the output: this is no loss of the model's own"),
        (nn.LSTM(8, 4), {}, "the sum of 3 outputs: this is no loss of the model's own"),
    ],
)
def test_what_it_began_from_is_said(model, options, note):
    traced = shapetrace.trace(model, torch.ones(2, 8), backward=True, **options)
    assert note in traced.notes[0]
    assert note not in "".join(shapetrace.trace(model, torch.ones(2, 8), **options).notes)


def test_only_what_the_pass_needs_is_kept_for_it():
    training = shapetrace.trace(MLP(), torch.ones(2, 8), backward=True).to_dict()["training"]
    kept = {layer["path"]: layer["bytes"] for layer in training["saved_for_backward"]}
    assert kept["block"] == 2 * 16 * 4  # hidden, after the relu
    assert "down" not in kept  # the derivative of a sum needs no values


def frozen():
    return MLP().requires_grad_(False)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (frozen(), "no parameter and no input requires grad"),
        (Detached(), "detached"),
        (Chosen(), "no floating-point tensor"),
    ],
)
def test_nothing_to_begin_from_is_one_line(model, words):
    with pytest.raises(ShapetraceError, match=words) as caught:
        shapetrace.trace(model, torch.ones(2, 8), backward=True)
    assert not hasattr(caught.value, "__notes__")


def test_an_input_alone_may_require_grad():
    x = torch.ones(2, 8, requires_grad=True)
    found = totals(shapetrace.trace(frozen(), x, backward=True))
    assert found["flops_backward"] == found["flops_forward"] == 2 * 2 * (8 * 16 + 16 * 5)
    assert x.grad is None


def test_a_graph_of_the_users_own_is_not_used_up():
    weight = torch.ones(8, requires_grad=True)
    x = torch.ones(2, 8) * weight.exp()
    with pytest.raises(ShapetraceError, match=r"argument \[0\] is the result of a computation"):
        shapetrace.trace(MLP(), x, backward=True)
    x.sum().backward()
    assert torch.equal(weight.grad, 2 * weight.detach().exp())
