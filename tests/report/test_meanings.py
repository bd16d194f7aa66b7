"""What tensors mean is said of the typed Transformer: elsewhere a name may mean anything."""

from __future__ import annotations

import torch
from torch import nn

import shapetrace


class Other(nn.Module):
    """A user's own model with the names that the typed Transformer uses."""

    def __init__(self, d_model=8):
        super().__init__()
        self.body = nn.Linear(d_model, d_model)

    def forward(self, x, mask):
        scores = self.body(x)
        return scores + mask[..., None]


def test_nothing_is_said_of_another_models_values():
    traced = shapetrace.trace(Other(), torch.randn(2, 5, 8), torch.zeros(2, 5))
    assert {row.meaning for row in traced.rows()} == {""}


def test_ours_say_what_they_are():
    traced = shapetrace.forward("tiny-decoder", texts=["a b"])
    meanings = {row.name: row.meaning for row in traced.rows() if row.meaning}
    assert "residual stream" in meanings["x"]
    assert "query" in meanings["q"]


def test_target_ids_are_not_said_to_be_shifted():
    traced = shapetrace.forward("tiny-encoder-decoder", texts=["a b"], target_texts=["c d"])
    assert all("shifted" not in row.meaning for row in traced.rows())
