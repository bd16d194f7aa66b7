"""Scripted modules are seen from outside; graphs of torch.fx and torch.export line by line."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.cost import summarise


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 6)
        self.b = nn.Linear(6, 3)

    def forward(self, x):
        hidden = torch.relu(self.a(x))
        return self.b(hidden)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Two()

    def forward(self, first, second):
        return self.inner(first), second * 2


X = torch.randn(2, 4)
SCRIPTED = {
    "scripted": lambda: torch.jit.script(Two()),
    "traced": lambda: torch.jit.trace(Two(), X),
    "frozen": lambda: torch.jit.freeze(torch.jit.script(Two().eval())),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", SCRIPTED)
@pytest.mark.parametrize("inside", [False, True])
def test_arguments_and_results_are_seen(case, inside):
    scripted = SCRIPTED[case]()
    model = nn.Sequential(scripted, nn.ReLU()) if inside else scripted
    expected = model(X)
    hooks = len(scripted._forward_hooks), len(scripted._forward_pre_hooks)
    with shapetrace.record(model) as recording:
        result = model(X)
    traced = shapetrace.trace(model, X, dims={"B": 2})
    assert torch.equal(result, expected)
    assert (len(scripted._forward_hooks), len(scripted._forward_pre_hooks)) == hooks
    for trace in (recording.trace, traced):
        shapes = [t.shape for t in trace.tensors]
        assert (2, 4) in shapes
        assert (2, 3) in shapes
        assert summarise(trace).flops == 2 * 2 * (4 * 6 + 6 * 3)
        assert len([note for note in trace.notes if "scripted" in note]) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_argument_has_its_name():
    model = torch.jit.script(Pair())
    with shapetrace.record(model) as recording:
        model(X, X[:1])
    names = {
        (recording.trace.sites[t.site].name, t.element): t.shape for t in recording.trace.tensors
    }
    assert names["first", ""] == (2, 4)
    assert names["second", ""] == (1, 4)
    assert names["return", "[0]"] == (2, 3)
    assert names["return", "[1]"] == (1, 4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_module_that_raises_leaves_no_hook():
    model = torch.jit.script(Two())
    with pytest.raises(RuntimeError), shapetrace.record(model):
        model(torch.randn(2, 5))
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


GRAPHS = {
    "fx": lambda: torch.fx.symbolic_trace(Two()),
    "export": lambda: torch.export.export(Two(), (X,)).module(),
    "any batch": lambda: torch.export.export(
        Two(), (X,), dynamic_shapes=({0: torch.export.Dim("batch")},)
    ).module(),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_the_values_of_a_graph_are_seen(case):
    model = GRAPHS[case]()
    expected = model(X)
    before = type(model).forward.__code__
    with shapetrace.record(model) as recording:
        result = model(X)
    traced = shapetrace.trace(model, X, dims={"B": 2})
    assert torch.equal(result, expected)
    assert type(model).forward.__code__ is before
    for trace in (recording.trace, traced):
        found = {trace.sites[t.site].name: t.shape for t in trace.tensors}
        assert found["x"] == (2, 4)
        assert found["relu"] == (2, 6)
        assert found["return"] == (2, 3)
        assert summarise(trace).flops == 2 * 2 * (4 * 6 + 6 * 3)
