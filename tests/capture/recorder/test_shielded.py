"""Functions that compute otherwise, or not at all, while any dispatch mode is active."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.linalg import eigvalsh
from torch.nn.attention.flex_attention import flex_attention

from shapetrace.capture import record
from shapetrace.cost import summarise
from tests.capture.models_under_test import rand


class Singular(nn.Module):
    def forward(self, x):
        values = torch.linalg.svdvals(x)
        symmetric = x @ x.transpose(-1, -2)
        return values, eigvalsh(symmetric), torch.linalg.eigvals(symmetric)


class Flex(nn.Module):
    def forward(self, q, k, v):
        return flex_attention(q, k, v)


@pytest.mark.parametrize("size", [5, 17, 40])
def test_decompositions_give_the_same_bits_as_untraced(size):
    model, x = Singular(), rand(3, size, size)
    with torch.no_grad():
        expected = model(x)
        with record(model) as recording:
            actual = model(x)
    for one, other in zip(actual, expected, strict=True):
        assert torch.equal(one, other)
    listed = [name for name, _ in summarise(recording.trace).unmodelled]
    assert [name for name in listed if "svdvals" in name]
    assert [name for name in listed if "eigvalsh" in name]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_runs_and_is_priced():
    q, k, v = rand(2, 4, 16, 8), rand(2, 4, 16, 8), rand(2, 4, 16, 8)
    model = Flex()
    with torch.no_grad():
        expected = model(q, k, v)
        with record(model) as recording:
            actual = model(q, k, v)
    assert torch.equal(actual, expected)
    assert summarise(recording.trace).flops == 2 * (2 * 2 * 4 * 16 * 16 * 8)
