"""The model compiles, exports, and runs without weights."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from shapetrace.model import ModelConfig, build

VARIANTS = {
    "gpt2-like": {"kind": "decoder", "positions": "learned"},
    "llama-like": {
        "kind": "decoder",
        "positions": "rope",
        "norm": "rmsnorm",
        "h_kv": 2,
        "gated": True,
        "biases": "none",
        "window": 4,
    },
    "bert-like": {"kind": "encoder", "positions": "learned", "norm_position": "post"},
    "original": {"kind": "encoder-decoder", "norm_position": "post", "scale_embedding": True},
}


def made(name, attention):
    torch.manual_seed(0)
    values = {"layers": 2, "d_model": 32, "h": 4, "vocab_size": 50, "attention": attention}
    model = build(ModelConfig(**values, **VARIANTS[name])).eval()
    ids = torch.randint(0, 50, (2, 6))
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[1, 4:] = False
    if VARIANTS[name]["kind"] == "encoder-decoder":
        return model, (ids, torch.randint(0, 50, (2, 5)), mask)
    return model, (ids, mask)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of its own parts
@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("name", VARIANTS)
def test_compiles_without_a_graph_break(name, attention):
    model, inputs = made(name, attention)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs), model(*inputs), atol=1e-5, rtol=1e-5)
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's exporter warns of its own parts
@pytest.mark.parametrize("name", VARIANTS)
def test_exports(name):
    model, inputs = made(name, "fused")
    with torch.no_grad():
        exported = torch.export.export(model, inputs).module()
        torch.testing.assert_close(exported(*inputs), model(*inputs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("name", VARIANTS)
def test_runs_on_fake_tensors(name, attention):
    model, inputs = made(name, attention)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = tuple(mode.from_tensor(t) for t in inputs)
        assert model(*fakes).shape == model(*inputs).shape


@pytest.mark.parametrize("name", VARIANTS)
def test_is_built_on_fake_tensors(name):
    values = {"layers": 2, "d_model": 32, "h": 4, "vocab_size": 50}
    with FakeTensorMode():
        model = build(ModelConfig(**values, **VARIANTS[name]))
        ids = torch.zeros(2, 6, dtype=torch.long)
        inputs = (ids, ids) if VARIANTS[name]["kind"] == "encoder-decoder" else (ids,)
        assert model(*inputs).shape[:2] == (2, 6)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_tied_matrix_stays_one(name):
    model, _ = made(name, "fused")
    if model.config.head == "lm":
        stack = model.encoder if model.config.kind == "encoder-decoder" else model
        assert model.head.weight is stack.embedding.token.weight


def test_runs_in_half_precision():
    config = ModelConfig.from_preset("tiny-decoder").replaced({"positions": "rope"})
    model = build(config, dtype=torch.bfloat16)
    assert model(torch.zeros(1, 4, dtype=torch.long)).dtype == torch.bfloat16


def test_more_tokens_than_learned_positions_are_refused():
    model = build(ModelConfig.from_preset("tiny-decoder").replaced({"max_positions": "4"}))
    with pytest.raises(ValueError, match="5 tokens, but only 4 positions"):
        model(torch.zeros(1, 5, dtype=torch.long))


def test_token_types_need_a_model_that_knows_them():
    model = build(ModelConfig.from_preset("tiny-encoder"))
    ids = torch.zeros(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match="`token_types` is 0"):
        model(ids, token_type_ids=ids)
    with pytest.raises(ValueError, match="no pooler"):
        model.pooled(torch.zeros(1, 5, 32))
