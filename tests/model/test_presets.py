"""Parameter counts of the presets, against the published ones."""

import pytest
import torch

from shapetrace.model import ModelConfig, build, presets


def transformer_count(d_model, d_ff, layers=6, vocab=37000):
    """Vaswani et al. 2017 in closed form: biases everywhere, one shared embedding."""
    attention = 4 * (d_model * d_model + d_model)
    feedforward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = attention + feedforward + 2 * norm
    decoder = 2 * attention + feedforward + 3 * norm
    return vocab * d_model + layers * (encoder + decoder)


PUBLISHED = {
    # The paper rounds to 65 and 213 million.
    "transformer-base": transformer_count(512, 2048),
    "transformer-big": transformer_count(1024, 4096),
    # With pooler, without a head.
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    # The tied head counted once.
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-0.5b": 494_032_768,
}


@pytest.mark.parametrize("name", [name for name in presets() if not name.startswith("tiny")])
def test_parameter_count_is_the_published_one(name):
    model = build(ModelConfig.from_preset(name), device="meta")
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]


def test_the_papers_rounded_counts():
    assert abs(PUBLISHED["transformer-base"] / 65e6 - 1) < 0.04
    assert abs(PUBLISHED["transformer-big"] / 213e6 - 1) < 0.01


@pytest.mark.parametrize("name", presets())
def test_every_preset_runs_without_weights(name):
    config = ModelConfig.from_preset(name)
    with torch.device("meta"):
        model = build(config)
        ids = torch.zeros(2, 6, dtype=torch.long)
    target = (ids[:, :4],) if config.kind == "encoder-decoder" else ()
    out = model(ids, *target)
    width = config.d_model if config.head == "none" else config.vocab_size
    assert out.shape == (2, 4 if target else 6, width)
    assert out.device.type == "meta"
