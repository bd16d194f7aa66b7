"""Names that the user gives to sizes no input has."""

from __future__ import annotations

import torch
from torch import nn

import shapetrace


class Wide(nn.Module):
    """A width that only the weights have, and a constructor that can't be called by name."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        (width,) = widths
        self.a = nn.Linear(8, width)
        self.b = nn.Linear(width, 5)

    def forward(self, x):
        hidden = self.a(x)
        joined = torch.cat([x, x, x], 1)
        return self.b(hidden), joined


def test_a_given_size_names_the_fixed_axes_that_have_it():
    trace = shapetrace.trace(Wide(24), torch.randn(2, 7, 8), dims={"B": 2, "n": 7, "width": 24})
    assert {row.name: row.dims for row in trace.rows()}["hidden"] == "B n width"
    (hidden,) = (t for t in trace.tensors if trace.sites[t.site].name == "hidden")
    assert hidden.dims[2].evidence == "attribute"
    assert dict(trace.sizes) == {"B": 2, "n": 7, "width": 24}


def test_an_axis_that_moves_never_takes_a_given_size_s_name():
    trace = shapetrace.trace(Wide(21), torch.randn(2, 7, 8), dims={"B": 2, "n": 7, "width": 21})
    dims = {row.name: row.dims for row in trace.rows()}
    assert (dims["hidden"], dims["joined"]) == ("B n width", "B 3*n 8")


def test_two_given_names_of_one_size_name_nothing():
    dims = {"B": 2, "n": 7, "width": 24, "depth": 24}
    trace = shapetrace.trace(Wide(24), torch.randn(2, 7, 8), dims=dims)
    assert {row.name: row.dims for row in trace.rows()}["hidden"] == "B n 24"


def test_a_given_name_that_fits_nothing_is_told():
    dims = {"B": 2, "n": 7, "witdh": 23}
    trace = shapetrace.trace(Wide(24), torch.randn(2, 7, 8), dims=dims)
    assert "`witdh` names no axis: nothing that is known to be fixed has size 23" in trace.notes
    assert not any("names no axis" in note for note in _noted({"B": 2, "n": 7, "width": 24}))


def test_what_is_guessed_or_an_attributes_is_marked():
    told = str(shapetrace.trace(Giver(), torch.randn(2, 7, 8), dims={"B": 2, "n": 7}))
    assert "B n width~ " in told
    assert "note: `width~` is an attribute" in told
    assert "guessed" not in told
    trace = shapetrace.trace(Giver(), torch.randn(2, 7, 8))
    assert "B? n? width~ " in str(trace)
    assert "guessed from the axis's place" in str(trace)
    (row,) = (row for row in trace.to_dict()["rows"] if row["name"] == "h")
    assert (row["dims"], row["evidence"]) == ("B n width", ["guess", "guess", "attribute"])


def _noted(dims):
    return shapetrace.trace(Wide(24), torch.randn(2, 7, 8), dims=dims).notes


class Receiver(nn.Module):
    """Has a number of its own that merely equals the width of what it is handed."""

    def __init__(self) -> None:
        super().__init__()
        self.group_size = 24
        self.down = nn.Linear(24, 4)

    def forward(self, hidden):
        return self.down(hidden)


class Giver(nn.Module):
    """Makes a tensor and hands it on."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 24
        self.up = nn.Linear(8, 24)
        self.receiver = Receiver()

    def forward(self, x):
        h = self.up(x)
        return self.receiver(h)


def test_an_attribute_of_who_receives_a_tensor_does_not_name_it():
    trace = shapetrace.trace(Giver(), torch.randn(2, 7, 8), dims={"B": 2, "n": 7})
    dims = {row.name: row.dims for row in trace.rows()}
    assert dims["h"] == dims["hidden"] == "B n width"
