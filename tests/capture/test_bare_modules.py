"""Modules whose call runs no code of the user's: torch's own, bare or subclassed; stand-ins."""

from __future__ import annotations

import functools
from types import MethodType

import pytest
import torch
from torch import nn

import shapetrace


def rows_of(model, *inputs, **dims):
    return [
        (row.path, row.name, row.dims) for row in shapetrace.trace(model, *inputs, dims=dims).rows()
    ]


def paths_of(trace):
    return [(s.path, s.kind, s.type_name) for s in trace.scopes[1:]]


def test_a_bare_module_shows_what_it_takes_and_returns():
    trace = shapetrace.trace(nn.Linear(8, 4), torch.ones(2, 5, 8), dims={"B": 2, "n": 5})
    found = [(row.name, row.dims, row.flops) for row in trace.rows()]
    work = 2 * 2 * 5 * 8 * 4
    assert found == [("input", "B n in_features", 0), ("return", "B n out_features", work)]
    assert "nothing was recorded" not in str(trace)


def test_a_bare_sequence_shows_each_of_its_modules():
    model = nn.Sequential(nn.Linear(8, 6), nn.ReLU())
    assert rows_of(model, torch.ones(2, 8), B=2) == [
        ("", "input", "B 8"),
        ("0", "input", "B 8"),
        ("0", "return", "B 6"),
        ("1", "input", "B 6"),
        ("1", "return", "B 6"),
        ("", "return", "B 6"),
    ]


@pytest.mark.parametrize(
    ("make", "returned"),
    [
        (
            lambda: nn.LSTM(8, 6, batch_first=True),
            ["B n hidden_size", *["num_layers B hidden_size"] * 2],
        ),
        (lambda: nn.GRU(8, 6, batch_first=True), ["B n hidden_size", "num_layers B hidden_size"]),
        (lambda: nn.Conv1d(5, 7, 3, padding=1), ["B out_channels 8"]),
        (lambda: nn.LayerNorm(8), ["B n normalized_shape_0"]),
    ],
    ids=["LSTM", "GRU", "Conv1d", "LayerNorm"],
)
def test_a_bare_module_returns_rows_by_name(make, returned):
    rows = rows_of(make().eval(), torch.ones(2, 5, 8), B=2, n=5)
    assert [dims for path, name, dims in rows if name.startswith("return")] == returned


def test_bare_attention_and_encoder_layers():
    x = torch.ones(2, 5, 8)
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    rows = rows_of(attention, x, x, x, B=2, n=5)
    assert ("", "return[0]", "B n embed_dim") in rows
    assert ("", "return[1]", "B n n") in rows
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    rows = rows_of(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), x, B=2, n=5)
    assert ("layers.1", "return", "B n 8") in rows


def test_inside_the_users_code_torch_keeps_its_own_to_itself():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 4), nn.ReLU())

        def forward(self, x):
            return self.body(x)

    rows = rows_of(Net(), torch.ones(2, 8), B=2)
    assert rows == [("", "x", "B 8"), ("", "return", "B 4")]


class Tower(nn.Sequential):
    """A `Sequential` of the user's, with no forward of its own."""


def test_a_subclassed_sequence_has_a_scope_of_its_own():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = Tower(nn.Linear(8, 8), nn.ReLU())

        def forward(self, x):
            return self.tower(x)

    trace = shapetrace.trace(Net(), torch.ones(2, 8))
    assert ("tower", "module", "Tower") in paths_of(trace)
    (row,) = [row for row in trace.rows("modules") if row.path == "tower"]
    assert row.flops == 2 * 2 * 8 * 8


class Net(nn.Module):
    """Calls one module."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x)


class Part(nn.Module):
    """Has a forward that others replace."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 4)

    def forward(self, x):
        return self.inner(x)


def replaced(self, x):
    doubled = 2 * x
    return self.inner(doubled)


def test_a_replaced_forward_is_its_modules_call():
    part = Part()
    part.forward = MethodType(replaced, part)
    trace = shapetrace.trace(Net(part), torch.ones(2, 8))
    assert paths_of(trace) == [
        ("", "module", "Net"),
        ("part", "module", "Part"),
        ("part.inner", "module", "Linear"),
    ]
    assert [row.path for row in trace.rows() if row.name == "doubled"] == ["part"]


def halved(function):
    @functools.wraps(function)
    def wrapper(self, x):
        half = x / 2
        return function(self, half)

    return wrapper


def renamed(function):
    @functools.wraps(function)
    def outer(self, x):
        return function(self, x)

    return outer


class Decorated(Part):
    """Has a forward in two decorators."""

    @halved
    @renamed
    def forward(self, x):
        return self.inner(x)


def test_a_decorator_is_a_function_around_its_modules_call():
    trace = shapetrace.trace(Net(Decorated()), torch.ones(2, 8))
    assert paths_of(trace) == [
        ("", "module", "Net"),
        ("wrapper()", "function", "halved.wrapper"),
        ("wrapper().outer()", "function", "renamed.outer"),
        ("part", "module", "Decorated"),
        ("part.inner", "module", "Linear"),
    ]
