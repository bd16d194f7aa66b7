"""`trace --backward`: a backward pass of any model, as `forward --backward` shows it."""

import json
import sys

import pytest

MODELS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=16, frozen=False, rate=0.0):
        super().__init__()
        self.up = nn.Linear(8, width)
        self.down = nn.Linear(width, 4)
        self.drop = nn.Dropout(rate)
        self.requires_grad_(not frozen)

    def forward(self, x):
        hidden = self.drop(self.up(x)).relu()
        return self.down(hidden)

class OneWay(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise TypeError("no gradient of dtype float32 here")

class Stuck(Net):
    def forward(self, x):
        return super().forward(OneWay.apply(x.requires_grad_()))
"""


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    (tmp_path / "back_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)

    def call(name, *words):
        return command("trace", f"back_models.py:{name}", "--input", "x:float32[B=2,n=3,8]", *words)

    yield call
    sys.modules.pop("back_models", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def test_gradients_memory_and_work_are_shown(run):
    code, out, err = run("Net", "--backward")
    assert code == 0, err
    rows = [line.split() for line in out.splitlines()]
    assert ["up.weight", "16", "8", "16", "8", "512", "B"] in rows
    assert ["FLOPs", "forward", "2.3", "kFLOP"] in rows  # 2 * 6 * (8 * 16 + 16 * 4)
    assert ["FLOPs", "backward", "3.07", "kFLOP"] in rows  # 2304 and 2 * 6 * 16 * 4, none for x
    assert "evaluation mode, with gradients" in out
    assert "backward pass from the sum of the output: this is no loss of the model's own" in out


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_training_mode_and_a_backward_pass_are_two_things(run, device):
    found = {}
    for words in ((), ("--train",), ("--backward",), ("--train", "--backward")):
        code, out, err = run(
            "Net", "--arg", "rate=0.5", "--device", device, "--format", "json", *words
        )
        assert code == 0, err
        found[words] = json.loads(out)
    work = 2 * 6 * (8 * 16 + 16 * 4)
    for words, shown in found.items():
        mode = "training mode" if "--train" in words else "evaluation mode"
        grads = "with gradients" if words else "no gradients"
        assert shown["notes"][0].endswith(f"; {mode}, {grads}")
        assert shown["totals"]["flops_forward"] == work
        assert (shown["totals"]["flops_backward"] > 0) == ("--backward" in words)
        assert ("--backward" in words) == (shown.get("training") is not None)


def test_nothing_that_requires_grad_is_one_line(run):
    code, out, err = run("Net", "--arg", "frozen=True", "--backward")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no parameter and no input requires grad" in err
    assert run("Net", "--arg", "frozen=True", "--train")[0] == 0


def test_a_backward_pass_that_fails_is_the_models_failure(run):
    code, out, err = run("Stuck", "--backward")
    assert code == 1
    assert "hidden" in out
    assert "the model raised TypeError: no gradient of dtype float32 here" in err
    assert run("Stuck", "--train")[0] == 0


def test_what_was_saved_has_its_backward_pass(run, command, tmp_path):
    path = tmp_path / "net.trace"
    code, shown, err = run("Net", "--backward", "--save", path)
    assert code == 0, err
    assert command("report", path)[1] == shown
