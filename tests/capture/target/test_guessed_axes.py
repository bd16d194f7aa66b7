"""Names that axes of inputs are guessed to have: of masks, and of inputs with many axes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import shapetrace


class Masked(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x, mask):
        return self.attend(x, x, x, attn_mask=mask, need_weights=False)[0]


@pytest.mark.parametrize("mask", [torch.zeros(5, 5), torch.zeros(5, 5, dtype=torch.bool)])
@pytest.mark.parametrize("first", [False, True])
def test_the_axes_of_a_square_mask_move_with_the_positions(mask, first):
    class Swapped(Masked):
        def forward(self, mask, x):
            return super().forward(x, mask)

    x = torch.randn(2, 5, 8)
    model = (Swapped if first else Masked)().eval()
    given = (mask, x) if first else (x, mask)
    traced = shapetrace.trace(model, *given)
    found = {row.name: row.dims for row in traced.rows()}
    assert found["mask"] == "n n"
    assert found["x"].startswith("B n ")
    assert not [note for note in traced.notes if "could not be probed" in note]


def test_a_mask_for_every_head_moves_too():
    class Net4(nn.Module):
        def forward(self, x, mask):
            return (x @ x.mT)[:, None] + mask

    x, mask = torch.randn(2, 5, 3), torch.zeros(2, 1, 5, 5)
    found = {row.name: row.dims for row in shapetrace.trace(Net4(), x, mask).rows()}
    assert found["mask"] == "B 1 n n"
    assert found["return"] == "B 1 n n"


@pytest.mark.parametrize("rank", [5, 6, 7])
def test_inputs_of_many_axes(rank):
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 6)

        def forward(self, x):
            return self.body(x).flatten(1)

    x = torch.randn(*range(2, 2 + rank - 1), 4)
    traced = shapetrace.trace(Deep(), x)
    found = {row.name: row.dims for row in traced.rows()}
    assert found["x"].split()[0] == "B"
    assert found["return"].split()[0] == "B"
