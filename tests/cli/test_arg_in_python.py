"""`shapetrace.trace(Net, x, arg=...)` says what `shapetrace trace FILE:Net --arg ...` says."""

from __future__ import annotations

import random
import textwrap

import numpy as np
import pytest
import torch

import shapetrace
from shapetrace.capture.target.loading import load_object
from shapetrace.errors import ShapetraceError

SOURCE = """
from dataclasses import dataclass, field
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, d_in, hidden=24, classes=5):
        super().__init__()
        self.up = nn.Linear(d_in, hidden)
        self.down = nn.Linear(hidden, classes)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        wide = self.drop(self.up(x))
        pooled = wide.mean(1)
        return self.down(pooled)

@dataclass
class Config:
    width: int = 12
    heads: int = 3

class Deep(nn.Module):
    def __init__(self, config: Config, options, widths=(6, 7)):
        super().__init__()
        self.heads = config.heads
        self.embed = nn.Embedding(options["vocabulary"], config.width * config.heads)
        widths.append(options["classes"])  # a list that it was given
        size = config.width
        self.layers = nn.ModuleList()
        for width in widths:
            self.layers.append(nn.Linear(size, width))
            size = width

    def forward(self, ids):
        hidden = self.embed(ids).unflatten(-1, (self.heads, -1))
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden

def convolutional(channels, *, blocks=2, kernel=3):
    size, layers = 3, []
    for _ in range(blocks):
        layers += [nn.Conv2d(size, channels, kernel, padding=kernel // 2), nn.ReLU()]
        size = channels
    return nn.Sequential(*layers, nn.Flatten(2))

def misread(width):
    return {"width": width}

def fails(width):
    raise ValueError("the width must divide 7")
"""

IDS = torch.arange(10).view(2, 5)
CASES = [
    ("Net", {"d_in": 9, "hidden": 31}, "float32[B=2,n=5,9]", torch.ones(2, 5, 9), {"B": 2, "n": 5}),
    (
        "Deep",
        {"config": {"width": 14}, "options": {"vocabulary": 37, "classes": 4}, "widths": [11, 17]},
        "int64[B=2,n=5]<10",
        IDS,
        {"B": 2, "n": 5},
    ),
    (
        "convolutional",
        {"channels": 10, "blocks": 3},
        "float32[B=2,3,H=8,W=6]",
        torch.ones(2, 3, 8, 6),
        {"B": 2, "H": 8, "W": 6},
    ),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(textwrap.dedent(SOURCE))
    return path


def flags(arg):
    """The same on the command line: what goes into a configuration's field is dotted there."""
    config = arg.get("config", {})
    plain = {key: value for key, value in arg.items() if key != "config"}
    texts = [f"config.{key}={value}" for key, value in config.items()]
    texts += [f"{key}={value!r}" for key, value in plain.items()]
    return [part for text in texts for part in ("--arg", text)]


def named(trace):
    sites = [trace.sites[tensor.site].name for tensor in trace.tensors]
    dims = [[(d.name, d.evidence) for d in tensor.dims or ()] for tensor in trace.tensors]
    return list(zip(sites, dims, strict=True))


@pytest.mark.parametrize(("name", "arg", "spec", "x", "dims"), CASES)
def test_axes_have_the_names_of_the_command_line(command, file, name, arg, spec, x, dims):
    saved = file.with_suffix(".trace")
    code, _, err = command("trace", f"{file}:{name}", *flags(arg), "--input", spec, "--save", saved)
    assert code == 0, err
    there = shapetrace.load(saved)
    here = shapetrace.trace(load_object(f"{file}:{name}"), x, dims=dims, arg=arg)
    assert named(here) == named(there)
    assert here.config == there.config
    names = {name for _, axes in named(here) for name, _ in axes}
    assert names & {"hidden", "classes", "channels"}


@pytest.mark.parametrize(("name", "arg", "spec", "x", "dims"), CASES)
def test_a_guessed_name_is_no_constructors(file, name, arg, spec, x, dims):
    trace = shapetrace.trace(load_object(f"{file}:{name}"), x, arg=arg)
    assert "is a name guessed" in str(trace) or "guessed from" in str(trace)
    names = {name for _, axes in named(trace) for name, _ in axes}
    assert names & {"hidden", "classes", "channels"}


def test_a_configuration_object_is_made_again_with_its_other_fields(file):
    config = load_object(f"{file}:Config")(width=10, heads=4)
    arg = {"config": config, "options": {"vocabulary": 37, "classes": 4}, "widths": [11, 17]}
    as_object = shapetrace.trace(load_object(f"{file}:Deep"), IDS, arg=arg)
    fields = {**arg, "config": {"width": 10, "heads": 4}}
    assert named(as_object) == named(shapetrace.trace(load_object(f"{file}:Deep"), IDS, arg=fields))
    assert "heads" in {name for _, axes in named(as_object) for name, _ in axes}
    assert (config.width, config.heads) == (10, 4)
    assert arg["widths"] == [11, 17]


def test_random_states_are_left_alone_and_the_mode_is_evaluation(file):
    torch.manual_seed(3), random.seed(3), np.random.seed(3)  # noqa: NPY002
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    shapetrace.trace(load_object(f"{file}:Net"), torch.ones(2, 5, 9), arg={"d_in": 9})
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert (np.random.get_state()[1] == before[2]).all()  # noqa: NPY002


def test_a_class_that_needs_nothing_needs_no_arg():
    trace = shapetrace.trace(torch.nn.Identity, torch.ones(2, 3))
    assert trace.tensors[-1].shape == (2, 3)


DEEP = {"options": {"vocabulary": 9, "classes": 4}}


@pytest.mark.parametrize(
    ("name", "arg", "says"),
    [
        ("Net", None, 'Net needs d_in: give arg={"d_in": ...}; it takes (d_in, hidden=24'),
        ("Net", {"hidden": 3}, "Net needs d_in: give"),
        ("Net", {"d_in": 9, "hiden": 3}, "arg hiden: Net has no such argument: did you mean 'hid"),
        ("convolutional", {"chanels": 3}, "did you mean 'channels'?"),
        ("Deep", {"config": {"widht": 3}, **DEEP}, "arg config.widht: Config has no such argum"),
        ("Deep", {"config": {"widht": 3}, **DEEP}, "did you mean 'width'?"),
        ("Net", {"d_in": "nine"}, "making Net with it raised TypeError"),
        ("Net", [9], "arg is a list; give arguments by name"),
        ("Net", {9: 9}, "arg: 9 is no name of an argument"),
        ("Config", {}, "Config is the class Config, neither an nn.Module nor"),
        ("misread", {"width": 3}, "misread made a dict, not an nn.Module"),
        ("fails", {"width": 3}, "making fails raised ValueError: the width must divide 7"),
    ],
)
def test_what_makes_no_model_is_one_clear_error(file, name, arg, says):
    with pytest.raises(ShapetraceError) as caught:
        shapetrace.trace(load_object(f"{file}:{name}"), torch.ones(2, 9), arg=arg)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)


def test_a_module_that_exists_takes_no_arg():
    with pytest.raises(ShapetraceError, match="the model, a Linear, exists already"):
        shapetrace.trace(torch.nn.Linear(2, 3), torch.ones(1, 2), arg={"bias": False})
