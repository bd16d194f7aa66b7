"""Sizes that run only together: the user's names first, and each axis its own where it can be."""

from __future__ import annotations

import sys
import textwrap

import pytest

from shapetrace.api.preparing.request import Request
from shapetrace.api.tracing.trace_target import trace_target
from shapetrace.explain import explain_names

MODELS = """
import torch
from torch import nn

class Flat(nn.Module):
    def __init__(self, size: int = 32, width: int = 6, classes: int = 10) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.second = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(2 * width * (size // 4) ** 2, classes)

    def forward(self, x):
        a = self.pool(self.first(x))
        b = self.pool(self.second(a))
        flat = b.flatten(1)
        return self.head(flat)

class Placed(nn.Module):
    def __init__(self, length: int = 12, width: int = 6) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.zeros(length, width))

    def forward(self, x):
        y = x + self.places
        return y

class Tiled(nn.Module):
    def __init__(self, image_size: int = 32, patch_size: int = 8, dim: int = 10) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError("patches must fill the image")
        self.num_patches = (image_size // patch_size) * (image_size // patch_size)
        self.project = nn.Conv2d(3, dim, patch_size, stride=patch_size)
        self.places = nn.Parameter(torch.zeros(1, self.num_patches + 1, dim))
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))

    def forward(self, x):
        patches = self.project(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), patches], dim=1)
        placed = tokens + self.places[:, : tokens.shape[1]]
        return placed
"""


@pytest.fixture
def names(tmp_path, monkeypatch):
    (tmp_path / "tied_models.py").write_text(textwrap.dedent(MODELS))
    monkeypatch.chdir(tmp_path)

    def found(target, *inputs):
        outcome = trace_target(Request(f"tied_models.py:{target}", inputs))
        assert outcome.error is None
        trace = outcome.trace
        named = {
            trace.sites[r.site].name: " ".join(dim.name for dim in r.dims)
            for r in trace.tensors
            if not trace.sites[r.site].internal
        }
        return named | {p.path: " ".join(dim.name for dim in p.dims) for p in trace.parameters}

    yield found
    sys.modules.pop("tied_models", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def test_axes_of_a_square_image_keep_the_names_that_the_user_gave(names):
    found = names("Flat", "x:float32[B=2,3,H=32,W=32]")
    assert found["x"] == "B 3 H W"
    assert found["a"] == "B width H//2 W//2"
    assert found["b"] == "B 2*width H//4 W//4"
    assert found["flat"] == "B 2*width*(H//4)*(W//4)"
    assert found["head.weight"] == "classes 2*width*(H//4)*(W//4)"


def test_without_names_the_constructors_speaks(names):
    found = names("Flat", "x:float32[B=2,3,32,32]")
    assert found["x"] == "B 3 size size"
    assert found["flat"] == "B 2*width*(size//4)**2"
    assert found["head.weight"] == "classes 2*width*(size//4)**2"


def test_the_one_axis_speaks_for_the_constructors_size(names):
    found = names("Placed", "x:float32[B=2,n=12,6]")
    assert found["y"] == "B n width"
    assert found["places"] == "n width"


def test_patches_are_counted_along_each_axis(names):
    found = names("Tiled", "x:float32[B=2,3,H=32,W=32]")
    assert found["x"] == "B 3 H W"
    assert found["patches"] == "B (H//patch_size)*(W//patch_size) dim"
    assert found["tokens"] == "B (H//patch_size)*(W//patch_size)+1 dim"
    assert found["places"] == "1 (image_size//patch_size)**2+1 dim"


def test_an_axis_given_as_a_number_is_explained_as_fixed(names):
    request = Request("tied_models.py:Placed", ("x:float32[2,n=12,6]",))
    (hint,) = [
        line for line in explain_names(trace_target(request).trace).splitlines() if line[0] == "2"
    ]
    assert "x[0] of the inputs is 2 without a name, and stays" in hint
