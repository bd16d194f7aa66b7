"""Notes of what is not seen inside speak of functions that the run entered, and of no other."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import torch
from torch import nn

import shapetrace


def halves(x):
    yield x[:1]
    yield x[1:]


def never(x):
    yield x


async def doubled(x):
    """Wait for nothing."""
    return x * 2


async def never_awaited(x):
    return x


@contextlib.contextmanager
def prepared():
    yield 3


@contextlib.contextmanager
def never_prepared():
    yield 3


class Net(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.body = nn.Linear(4, 4)

    def pieces(self, x):
        for row in x:
            yield self.body(row)

    def never_called(self):
        yield self

    def forward(self, x):
        y = self.body(x)
        if self.way == "generator":
            y = torch.cat(list(halves(y)))
        if self.way == "method":
            y = torch.stack(list(self.pieces(y)))
        if self.way == "async":
            y = asyncio.run(doubled(y))
        if self.way == "context":
            with prepared() as times:
                y = y * times
        if self.way == "made":
            self.kept = halves(y)  # not one step of it is taken
        return y


SAID = {
    "none": "",
    "made": "",
    "generator": "halves (generator)",
    "method": "Net.pieces (generator)",
    "async": "doubled (async)",
    "context": "prepared (generator)",
}


@pytest.mark.parametrize("way", SAID)
@pytest.mark.parametrize("grad", [True, False])
def test_notes_name_what_was_entered(way, grad):
    model, x = Net(way), torch.randn(2, 4)
    with torch.set_grad_enabled(grad):
        expected = model(x)
        traced = shapetrace.trace(model, x)
        with shapetrace.record(model) as recording:
            result = model(x)
    assert torch.equal(result, expected)
    for trace in (traced, recording.trace):
        said = [note for note in trace.notes if "not seen inside" in note]
        assert said == ([f"{__file__}: {SAID[way]} is not seen inside"] if SAID[way] else [])


def test_generators_have_their_own_code_afterwards():
    before = halves.__code__, doubled.__code__, Net.pieces.__code__
    model = Net("method")
    with shapetrace.record(model):
        model(torch.randn(2, 4))
    assert (halves.__code__, doubled.__code__, Net.pieces.__code__) == before
