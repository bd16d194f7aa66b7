"""Attributes that hide methods of `nn.Module`: torch calls such a model, so it is traced."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.capture.values import members
from shapetrace.cost import summarise

NAMES = (
    *("modules", "named_modules", "children", "named_children", "parameters", "state_dict"),
    *("named_parameters", "buffers", "named_buffers", "train", "eval", "to", "get_submodule"),
    *("apply", "_named_members", "_get_name", "extra_repr", "zero_grad", "requires_grad_"),
)


class Inner(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.first = nn.Linear(4, 6)
        vars(self)[name] = [nn.Linear(6, 5)]

    def forward(self, x):
        return self.first(x)


class Outer(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.inner = Inner(name)
        self.norm = nn.BatchNorm1d(6)
        vars(self)[name] = {"what": "anything"}

    def forward(self, x):
        return self.norm(self.inner(x))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_torchs_may_be_any_attribute(name):
    model = Outer(name)
    for module in members.modules(model):
        module.training = False
    twin = copy.deepcopy(model)
    x = torch.randn(3, 4)
    traced = shapetrace.trace(model, x, dims={"B": 3})
    with shapetrace.record(model) as recording:
        result = model(x)
    assert torch.equal(result, twin(x))
    assert (
        summarise(traced).parameters == summarise(recording.trace).parameters == 4 * 6 + 6 + 2 * 6
    )
    assert summarise(traced).flops == 2 * 3 * 4 * 6
    assert [scope.path for scope in traced.scopes if scope.kind == "module"][-1] == "norm"


def test_methods_with_other_signatures_are_not_called():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 6)

        def modules(self, wanted):
            return wanted

        @property
        def children(self):
            raise AssertionError("nobody asked for it")

        def forward(self, x):
            return self.body(x)

    traced = shapetrace.trace(Odd(), torch.ones(2, 4))
    assert summarise(traced).flops == 2 * 2 * 4 * 6


def test_members_are_those_that_torch_lists():
    shared = nn.Linear(4, 4)
    model = nn.ModuleDict({"a": shared, "b": nn.Sequential(shared, nn.BatchNorm1d(4), nn.ReLU())})
    model["a"].register_buffer("kept", torch.ones(2), persistent=False)
    model["a"].register_parameter("absent", None)
    for once in (True, False):
        ours = list(members.named_modules(model, remove_duplicate=once))
        assert ours == list(model.named_modules(remove_duplicate=once))
    ours = list(members.named_parameters(model))
    assert ours == list(model.named_parameters(remove_duplicate=False))
    ours = list(members.named_buffers(model))
    assert ours == list(model.named_buffers(remove_duplicate=False))
    assert members.parameters(model) == list(model.parameters())
    assert members.buffers(model) == list(model.buffers())


def test_a_module_that_lies_inside_itself_is_traced():
    class Ring(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.body.owner = self

        def forward(self, x):
            return self.body(x)

    traced = shapetrace.trace(Ring(), torch.ones(2, 4))
    assert summarise(traced).parameters == 20
