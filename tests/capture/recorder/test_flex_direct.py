"""Flex attention, called where no code is rewritten."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

import shapetrace


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", [None, torch.nn.Linear(4, 4)])
def test_it_runs_in_the_block_itself(model):
    x = torch.randn(2, 2, 5, 4)
    with torch.no_grad():
        expected = flex_attention(x, x, x)
        with shapetrace.record(model) as recording:
            result = flex_attention(x, x, x)
    assert torch.equal(result, expected)
    assert [op.name for op in recording.trace.ops if "flex" in op.name]
