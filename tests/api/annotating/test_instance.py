"""Annotating what is at hand in Python: a model that exists, a function."""

import importlib
import sys

import pytest
import torch

import shapetrace
from shapetrace.annotation import Wishes

SOURCE = """import torch
from torch import nn


def scaled(x, by):
    return x * by[:, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(6, 9)

    def forward(self, x):
        return scaled(self.up(x), x.sum(-1))


class Curious(nn.Module):
    def forward(self, x):
        return x + len(Curious.forward.__annotations__)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "at_hand.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("at_hand")
    sys.modules.pop("at_hand")


@pytest.mark.slow
def test_an_instance_then_a_function(module):
    model = module.Net().train()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    result = shapetrace.annotate(model, torch.randn(4, 6), dims={"B": 4})
    assert (
        '+    def forward(self, x: Float[torch.Tensor, "B 6"]) -> Float[torch.Tensor, "B 9"]:'
        in (result.diff())
    )
    assert "outputs equal to the bit in 3 runs" in str(result)
    assert model.training
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())

    result = shapetrace.annotate(
        module.scaled,
        torch.randn(4, 6),
        torch.randn(4),
        dims={"B": 4, "d": 6},
        wishes=Wishes(exact_dtype=True),
    )
    (written,) = result.write()
    text = written.read_text()
    assert '    x: Float32[torch.Tensor, "B d"],\n    by: Float32[torch.Tensor, " B"],\n' in text
    assert ') -> Float32[torch.Tensor, "B d"]:\n' in text
    assert written.with_name("at_hand.py.bak").read_text() == SOURCE


@pytest.mark.slow
def test_a_model_that_reads_its_annotations_is_refused(module):
    with pytest.raises(shapetrace.ShapetraceError, match="computes something else with annotat"):
        shapetrace.annotate(module.Curious(), torch.ones(2))


def test_a_model_of_the_running_script_is_refused(module, monkeypatch):
    monkeypatch.setattr(module.Net, "__module__", "__main__")
    with pytest.raises(shapetrace.ShapetraceError, match="Net is defined in the running script"):
        shapetrace.annotate(module.Net(), torch.randn(4, 6))
