"""The closed forms against what the model really ran."""

import pytest
import torch
from dispatched import total

from shapetrace.cost.symbolic import cache_bytes, forward_flops
from shapetrace.dims import UnboundNameError
from shapetrace.model import ModelConfig, build

B, N, M = 2, 7, 5
SIZES = {"layers": 3, "d_model": 24, "h": 4, "d_k": 10, "d_ff": 36, "vocab_size": 50}
VARIANTS = {
    "decoder": {"kind": "decoder"},
    "grouped, gated, rotary": {
        "kind": "decoder",
        "h_kv": 2,
        "gated": True,
        "positions": "rope",
        "norm": "rmsnorm",
    },
    "untied": {"kind": "decoder", "tie_embeddings": False, "biases": "none"},
    "encoder": {"kind": "encoder", "head": "mlm"},
    "encoder with pooler": {"kind": "encoder", "head": "none", "pooler": True},
    "encoder-decoder": {"kind": "encoder-decoder", "decoder_layers": 2},
}


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_closed_forms_equal_a_run(variant, attention):
    config = ModelConfig(**{**SIZES, **VARIANTS[variant], "attention": attention})
    model = build(config).eval()
    ids = torch.zeros(B, N, dtype=torch.long)
    inputs = (
        (torch.zeros(B, M, dtype=torch.long), ids) if config.kind == "encoder-decoder" else (ids,)
    )
    names = ("layers", "decoder_layers", "d_model", "h", "h_kv", "d_k", "d_ff", "vocab_size")
    sizes = {"B": B, "n": N, "m": M, **{name: getattr(config, name) or 0 for name in names}}
    forms = forward_flops({name: getattr(config, name) for name in ("kind", "gated", "head")})
    with torch.no_grad():
        assert total(lambda: model(*inputs)) == sum(form.value(sizes) for form in forms)


def test_cache_of_llama_3_8b():
    """8,192 tokens at 2 bytes are 1 GiB."""
    sizes = {"layers": 32, "B": 1, "h_kv": 8, "m": 8192, "d_k": 128}
    assert cache_bytes().value(sizes) == 2**30


def test_a_missing_size_is_named():
    with pytest.raises(UnboundNameError, match="`h_kv`"):
        cache_bytes().value({"layers": 1, "B": 1, "m": 1, "d_k": 1})
