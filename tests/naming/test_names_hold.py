"""Names by evidence hold at sizes that no probe has tried: models and sizes at random."""

from __future__ import annotations

from random import Random

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch import nn

import shapetrace
from shapetrace.dims import evaluate, names_in
from shapetrace.naming.lesser import name_lesser

STEPS = ("up", "down", "crop", "meet", "join", "pool", "both", "head", "tail", "heads", "halve")


class Made(nn.Module):
    """Steps over two sequences, at sizes that are all its own."""

    def __init__(self, steps: tuple = (), width: int = 6, deep: int = 5, k: int = 3, h: int = 2):
        super().__init__()
        self.steps, self.k, self.h = steps, k, h
        self.up, self.down = nn.Linear(width, deep), nn.Linear(deep, width)
        self.embed = nn.Linear(10, width)

    def forward(self, x, y):
        a, b = self.embed(x), self.embed(y)
        for step in self.steps:
            a = getattr(self, f"do_{step}")(a, b)
        return a

    def do_up(self, a, b):
        return self.down(self.up(a))

    def do_down(self, a, b):
        wide = self.up(a)
        narrow = wide[..., : self.k]
        return a * narrow.sum(-1, keepdim=True)

    def do_crop(self, a, b):
        return a[:, : self.k]

    def do_meet(self, a, b):
        least = min(a.shape[1], b.shape[1])
        return a[:, :least] + b[:, :least]

    def do_join(self, a, b):
        return torch.cat([a, b], 1)

    def do_pool(self, a, b):
        return a[:, ::2]

    def do_both(self, a, b):
        longest = max(a.shape[1], b.shape[1])
        return a.mean(1, keepdim=True).expand(-1, longest, -1)

    def do_head(self, a, b):
        return a[:, :1]

    def do_tail(self, a, b):
        rest = a[:, 1:]
        return torch.cat([a, rest], 1)

    def do_heads(self, a, b):
        each = a.shape[-1] // self.h
        split = a[..., : each * self.h].unflatten(-1, (self.h, each))
        return a + split.sum((-1, -2)).unsqueeze(-1)

    def do_halve(self, a, b):
        half = a[..., : a.shape[-1] // 2]
        return a + half.sum(-1, keepdim=True)


SIZES = st.fixed_dictionaries(
    {name: st.integers(2, 9) for name in ("B", "n", "m", "width", "deep", "k", "h")}
)


def inputs(sizes):
    return torch.randn(sizes["B"], sizes["n"], 10), torch.randn(sizes["B"], sizes["m"], 10)


def model(steps, sizes):
    own = {name: sizes[name] for name in ("width", "deep", "k", "h")}
    return Made(steps, **own).eval()


def records(trace):
    times = {}
    for record in trace.tensors:
        site = trace.sites[record.site]
        place = (trace.scopes[record.scope].path, site.line, site.name, record.element)
        times[place] = times.get(place, -1) + 1
        yield (*place, times[place]), record


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a smaller example takes minutes
)
@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).map(tuple),
    SIZES.filter(lambda sizes: len({sizes["B"], sizes["n"], sizes["m"]}) == 3),
    st.lists(SIZES, min_size=3, max_size=3),
)
def test_a_name_by_evidence_is_the_size_at_any_size(steps, sizes, others):
    dims = {name: sizes[name] for name in ("B", "n", "m")}
    with torch.no_grad():
        named = dict(records(shapetrace.trace(model(steps, sizes), *inputs(sizes), dims=dims)))
        for other in others:
            resized = model(steps, other)
            with shapetrace.record(resized) as seen:
                resized(*inputs(other))
            for key, record in records(seen.trace):
                for dim, size in zip(_dims(named, key, record), record.shape, strict=False):
                    if dim.evidence == "probe":
                        assert evaluate(dim.name, other) == size, (steps, sizes, key, dim)


def _dims(named, key, record):
    known = named.get(key)
    return known.dims if known is not None and len(known.shape) == len(record.shape) else ()


BASE = {"a": 7, "b": 5, "c": 11, "d": 3}
FORMS = (
    *("min(a,b)", "max(a,b)", "min(a,4)", "max(a-4,0)"),
    *("d*min(a,b)", "min(2*a,b)", "min(a,b+1)", "max(a-b,0)", "a//d*d"),
)


@pytest.mark.parametrize("truth", FORMS)
@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_the_lesser_and_the_greater_are_told_where_both_sides_show(truth, seed):
    drawn = Random(seed)
    points = [BASE, *({name: drawn.randint(1, 20) for name in BASE} for _ in range(24))]
    found = name_lesser([(point, evaluate(truth, point)) for point in points], [*BASE])
    assert found is not None
    for point in points:
        assert evaluate(found, point) == evaluate(truth, point)
    assert set(names_in(found)) <= set(BASE)


def test_one_side_alone_is_no_lesser_of_two():
    points = [({"a": a, "b": 50}, a) for a in (3, 5, 8, 13)]
    assert name_lesser(points, ["a", "b"]) is None


class Stack(nn.Module):
    """A stack whose last layer has a width of its own, as in most MLPs and graph networks."""

    def __init__(self, features: int = 6, width: int = 10, classes: int = 4, num_layers: int = 3):
        super().__init__()
        widths = [features, *[width] * (num_layers - 1), classes]
        self.layers = nn.ModuleList(map(nn.Linear, widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_another_depth_takes_no_name_back():
    trace = shapetrace.trace(Stack, torch.zeros(3, 6), arg={})
    names = {tuple(dim.name for dim in r.dims) for r in trace.tensors if r.shape == (3, 10)}
    assert names == {("B", "width")}
