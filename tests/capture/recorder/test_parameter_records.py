"""Which parameters are one, told by where they lie."""

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.cost.memory import tied_to
from shapetrace.cost.summary import summarise


class Flat(nn.Module):
    """Parameters that are parts of one flat block, as optimizers and FSDP lay them."""

    def __init__(self):
        super().__init__()
        flat = torch.randn(24)
        self.a = nn.Parameter(flat[:12].view(3, 4))
        self.b = nn.Parameter(flat[12:].view(4, 3))

    def forward(self, x):
        return x @ self.a @ self.b


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4, bias=False)
        self.b = nn.Linear(3, 4, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.a(x) + self.b(x)


class TiedBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(3))
        self.register_buffer("b", self.a)

    def forward(self, x):
        return x + self.a + self.b


@pytest.mark.parametrize(
    ("make", "numbers", "buffers", "tied"),
    [
        (Flat, 24, 0, {}),
        (Tied, 12, 0, {"b.weight": "a.weight"}),
        (TiedBuffers, 0, 12, {"b": "a"}),
    ],
)
def test_what_lies_in_one_place_counts_once(make, numbers, buffers, tied):
    model = make()
    with shapetrace.record(model) as recording:
        model(torch.randn(2, 3))
    summary = summarise(recording.trace)
    assert (summary.parameters, summary.buffer_bytes) == (numbers, buffers)
    assert tied_to(recording.trace) == tied


def test_the_later_name_of_a_tied_weight_is_marked():
    model = Tied()
    with shapetrace.record(model) as recording:
        model(torch.randn(2, 3)).sum().backward()
    shown = str(recording.trace)
    assert "b.weight (tied to a.weight)" in shown
    assert "a.weight (tied" not in shown
