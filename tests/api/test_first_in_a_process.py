"""Each way into the library, tried first in a process: random numbers and outputs are as without it."""

import subprocess
import sys

import pytest

PROGRAM = """
import contextlib, io, random, sys
import numpy
import torch
import net

WAY = sys.argv[1]
model, x = net.Net(), torch.ones(3, 4)
model.load_state_dict({name: torch.full_like(t, 0.5) for name, t in model.state_dict().items()})


def run(way):
    import shapetrace
    match way:
        case "record":
            with shapetrace.record(model):
                return model(x)
        case "checking":
            with shapetrace.checking(model):
                return model(x)
        case "trace":
            shapetrace.trace(model, x)
        case "annotate":
            shapetrace.annotate(model, x)
        case "forward":
            shapetrace.forward("tiny-decoder", batch=1, seq=3)
        case "generate":
            shapetrace.generate("tiny-decoder", ["a b"], max_new_tokens=2)
        case "train":
            shapetrace.train("tiny-decoder", "test_net.py", training={"steps": 1, "seq": 8, "batch": 2})
        case "check":
            from shapetrace.__main__ import main
            sys.argv = ["shapetrace", "check", "net.py:Net", "--input", "x:float32[B=3,4]"]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                main()
        case "pytest":
            import pytest
            with contextlib.redirect_stdout(io.StringIO()):
                assert pytest.main(["-q", "-p", "no:cacheprovider", "--shapetrace", "test_net.py"]) == 0
    return None


def states():
    return torch.get_rng_state(), random.getstate(), numpy.random.get_state()


def seed():
    torch.manual_seed(7), random.seed(7), numpy.random.seed(7)


def same(one, other):
    return torch.equal(one[0], other[0]) and one[1] == other[1] and (
        (one[2][1] == other[2][1]).all() and one[2][2:] == other[2][2:])


seed()
if WAY in ("record", "checking"):
    given = run(WAY)
    after = states()
    seed()
    bare = model(x)
    assert torch.equal(given, bare), "other bits"
    assert same(after, states()), "other random states"
else:
    before = states()
    run(WAY)
    if WAY == "trace":  # the model is called once
        after = states()
        seed()
        model(x)
        assert same(after, states()), "other random states"
    else:
        assert same(before, states()), "other random states"
"""
NET = """
import random

import numpy
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = self.drop(self.linear(x) * random.random() + float(numpy.random.rand()))
        return y
"""
TEST = """
import net
import torch


def test_nothing_random():
    net.Net
    assert torch.ones(2).sum() == 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    ["record", "checking", "trace", "annotate", "forward", "generate", "train", "check", "pytest"],
)
def test_first_in_a_process(tmp_path, way):
    for name, text in (("net.py", NET), ("test_net.py", TEST), ("program.py", PROGRAM)):
        (tmp_path / name).write_text(text)
    words = [sys.executable, "program.py", way]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
