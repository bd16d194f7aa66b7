"""Published Transformers by name: a preset is one entry of `PRESETS`.

Adding one takes an entry here and its published parameter count in the test.
"""

from __future__ import annotations

from typing import Any

from shapetrace.model.errors import ModelError, did_you_mean

Values = dict[str, Any]

_TINY: Values = {
    "layers": 2,
    "d_model": 32,
    "h": 4,
    "d_ff": 64,
    "vocab_size": 256,
    "max_positions": 512,
}

# Vaswani et al. 2017, "Attention Is All You Need", table 3; 37,000 shared byte pairs.
_TRANSFORMER: Values = {
    "kind": "encoder-decoder",
    "layers": 6,
    "vocab_size": 37000,
    "max_positions": 1024,
    "norm_position": "post",
    "activation": "relu",
    "scale_embedding": True,
    "dropout": 0.1,
    "tie_embeddings": True,
}

# Devlin et al. 2018; vocabulary of bert-*-uncased.
_BERT: Values = {
    "kind": "encoder",
    "vocab_size": 30522,
    "positions": "learned",
    "max_positions": 512,
    "norm_position": "post",
    "norm_eps": 1e-12,
    "embedding_norm": True,
    "token_types": 2,
    "pooler": True,
    "dropout": 0.1,
    "pad_id": 0,
}

# Radford et al. 2019.
_GPT2: Values = {
    "kind": "decoder",
    "vocab_size": 50257,
    "positions": "learned",
    "max_positions": 1024,
    "activation": "gelu-tanh",
    "dropout": 0.1,
    "bos_id": 50256,
    "eos_id": 50256,
}

_LLAMA: Values = {
    "kind": "decoder",
    "positions": "rope",
    "norm": "rmsnorm",
    "activation": "silu",
    "gated": True,
    "biases": "none",
    "tie_embeddings": False,
}

_LLAMA_3: Values = {
    **_LLAMA,
    "h_kv": 8,
    "vocab_size": 128256,
    "rope_base": 500000.0,
    "bos_id": 128000,
    "eos_id": 128001,
}

PRESETS: dict[str, Values] = {
    "tiny-encoder": {**_TINY, "kind": "encoder", "positions": "learned", "head": "mlm"},
    "tiny-decoder": {**_TINY, "kind": "decoder", "positions": "learned"},
    "tiny-encoder-decoder": {**_TINY, "kind": "encoder-decoder", "scale_embedding": True},
    "transformer-base": {**_TRANSFORMER, "d_model": 512, "h": 8, "d_ff": 2048},
    "transformer-big": {**_TRANSFORMER, "d_model": 1024, "h": 16, "d_ff": 4096, "dropout": 0.3},
    "bert-base": {**_BERT, "layers": 12, "d_model": 768, "h": 12},
    "bert-large": {**_BERT, "layers": 24, "d_model": 1024, "h": 16},
    "gpt2": {**_GPT2, "layers": 12, "d_model": 768, "h": 12},
    "gpt2-medium": {**_GPT2, "layers": 24, "d_model": 1024, "h": 16},
    "gpt2-large": {**_GPT2, "layers": 36, "d_model": 1280, "h": 20},
    "gpt2-xl": {**_GPT2, "layers": 48, "d_model": 1600, "h": 25},
    "llama-3-8b": {
        **_LLAMA_3,
        "layers": 32,
        "d_model": 4096,
        "h": 32,
        "d_ff": 14336,
        "max_positions": 8192,
    },
    "llama-3.1-405b": {
        **_LLAMA_3,
        "layers": 126,
        "d_model": 16384,
        "h": 128,
        "d_ff": 53248,
        "max_positions": 131072,
        "rope_factor": 8.0,
    },
    "mistral-7b": {
        **_LLAMA,
        "layers": 32,
        "d_model": 4096,
        "h": 32,
        "h_kv": 8,
        "d_ff": 14336,
        "vocab_size": 32000,
        "max_positions": 32768,
        "window": 4096,
        "bos_id": 1,
        "eos_id": 2,
    },
    "qwen2.5-0.5b": {
        **_LLAMA,
        "layers": 24,
        "d_model": 896,
        "h": 14,
        "h_kv": 2,
        "d_ff": 4864,
        "vocab_size": 151936,
        "max_positions": 32768,
        "norm_eps": 1e-6,
        "biases": "qkv",
        "tie_embeddings": True,
        "rope_base": 1000000.0,
        "bos_id": 151643,
        "eos_id": 151643,
    },
}


def presets() -> tuple[str, ...]:
    """The names that `ModelConfig.from_preset` knows."""
    return tuple(PRESETS)


def preset(name: str) -> Values:
    """The fields of a preset.

    Raises:
        ModelError: No preset has that name.
    """
    if name not in PRESETS:
        raise ModelError(f"no preset {name!r}: {did_you_mean(name, PRESETS)}")
    return dict(PRESETS[name])
