"""Blocks against torch's own `nn.TransformerEncoderLayer` and `nn.TransformerDecoderLayer`."""

import pytest
import torch
from torch import nn

from shapetrace.model import ModelConfig
from shapetrace.model.layers.blocks import block, cross_block
from shapetrace.model.layers.visibility import across, both_sides

PARTS = {"self_attn": "attention", "multihead_attn": "cross_attention"}


def config(norm_position, activation, kind="encoder"):
    return ModelConfig(
        kind=kind,
        layers=1,
        d_model=24,
        h=3,
        d_ff=40,
        vocab_size=10,
        norm_position=norm_position,
        activation=activation,
    )


def copy_layer(theirs, ours, norms):
    """Their parameters in our block."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            nn.init.normal_(parameter, std=0.3)
        for name, part in PARTS.items():
            if hasattr(theirs, name):
                copy_attention(getattr(theirs, name), getattr(ours, part))
        pairs = [
            (ours.feedforward.w_up, theirs.linear1.weight),
            (ours.feedforward.b_up, theirs.linear1.bias),
            (ours.feedforward.w_down, theirs.linear2.weight),
            (ours.feedforward.b_down, theirs.linear2.bias),
        ]
        for number, name in enumerate(norms, 1):
            for leaf in ("weight", "bias"):
                there = getattr(getattr(theirs, f"norm{number}"), leaf)
                pairs.append((getattr(getattr(ours, name), leaf), there))
        for here, there in pairs:
            here.copy_(there)


def copy_attention(theirs, ours):
    for axis, weight in zip("qkv", theirs.in_proj_weight.chunk(3), strict=True):
        getattr(ours, f"w{axis}").copy_(weight)
    for axis, bias in zip("qkv", theirs.in_proj_bias.chunk(3), strict=True):
        getattr(ours, f"b{axis}").copy_(bias)
    ours.output.wo.copy_(theirs.out_proj.weight)
    ours.output.bo.copy_(theirs.out_proj.bias)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_position", ["pre", "post"])
def test_encoder_layer(norm_position, activation):
    torch.manual_seed(0)
    first = norm_position == "pre"
    theirs = nn.TransformerEncoderLayer(
        24, 3, 40, 0.0, activation, batch_first=True, norm_first=first
    ).train()  # the fast path of eval() needs other settings to be exact
    ours = block(config(norm_position, activation), causal=False)
    copy_layer(theirs, ours, ("attention_norm", "feedforward_norm"))
    x = torch.randn(2, 7, 24)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 4:] = False
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-4, rtol=1e-4)
    mine, other = ours(x, both_sides(mask)), theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(mine[mask], other[mask], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_position", ["pre", "post"])
def test_decoder_layer(norm_position):
    torch.manual_seed(0)
    first = norm_position == "pre"
    theirs = nn.TransformerDecoderLayer(24, 3, 40, 0.0, "relu", batch_first=True, norm_first=first)
    ours = cross_block(config(norm_position, "relu", "encoder-decoder"))
    copy_layer(theirs, ours, ("attention_norm", "cross_attention_norm", "feedforward_norm"))
    x, memory = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 4:] = False
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    mine = ours(x, memory, memory_visible=across(mask, 5))
    other = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)
