"""Hugging Face's config.json in our fields: one function per family.

Adding a family takes a function here and its tensor names in `names.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shapetrace.model.errors import ModelError, did_you_mean
from shapetrace.model.files.json_file import Fields

HuggingFaceFields = Mapping[str, Any]

ACTIVATION_NAMES = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}


def fields_from_huggingface(source: HuggingFaceFields, where: str) -> Fields:
    """Our configuration's fields from a Hugging Face configuration.

    Raises:
        ModelError: The family, or something that the configuration asks for, is not known.
    """
    family = source["model_type"]
    if not isinstance(family, str) or family not in FAMILIES:
        raise ModelError(
            f"{where}: no model_type {family!r}: {did_you_mean(str(family), FAMILIES)}"
        )
    try:
        values = FAMILIES[family](source)
    except KeyError as error:
        raise ModelError(f"{where}: field `{error.args[0]}` is missing") from None
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    return {name: value for name, value in values.items() if value is not None}


def _gpt2(source: HuggingFaceFields) -> Fields:
    _refuse(source, "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn")
    if source.get("scale_attn_weights") is False:
        raise ModelError("`scale_attn_weights` is false, which is not supported")
    return {
        "kind": "decoder",
        "layers": source["n_layer"],
        "d_model": source["n_embd"],
        "h": source["n_head"],
        "d_ff": source.get("n_inner"),
        "vocab_size": source["vocab_size"],
        "positions": "learned",
        "max_positions": source.get("n_positions", 1024),
        "norm_eps": source.get("layer_norm_epsilon", 1e-5),
        "activation": _activation(source, "activation_function", "gelu_new"),
        "dropout": source.get("resid_pdrop", 0.1),
        "tie_embeddings": source.get("tie_word_embeddings", True),
        **_token_ids(source),
    }


def _bert(source: HuggingFaceFields) -> Fields:
    kind = source.get("position_embedding_type", "absolute")
    if kind != "absolute":
        raise ModelError(f"`position_embedding_type` is {kind!r}; only 'absolute' is supported")
    _refuse(source, "is_decoder", "add_cross_attention")
    architectures = source.get("architectures")
    masked = "MaskedLM" in str(architectures)
    return {
        "kind": "encoder",
        "layers": source["num_hidden_layers"],
        "d_model": source["hidden_size"],
        "h": source["num_attention_heads"],
        "d_ff": source["intermediate_size"],
        "vocab_size": source["vocab_size"],
        "positions": "learned",
        "max_positions": source.get("max_position_embeddings", 512),
        "norm_position": "post",
        "norm_eps": source.get("layer_norm_eps", 1e-12),
        "activation": _activation(source, "hidden_act", "gelu"),
        "embedding_norm": True,
        "token_types": source.get("type_vocab_size", 2),
        "pooler": not masked,
        "head": "mlm" if masked else "none",
        "dropout": source.get("hidden_dropout_prob", 0.1),
        "tie_embeddings": source.get("tie_word_embeddings", True),
        **_token_ids(source),
    }


def _llama(source: HuggingFaceFields) -> Fields:
    heads = source["num_attention_heads"]
    qkv = source.get("attention_bias", False)
    if qkv or source.get("mlp_bias"):
        raise ModelError("`attention_bias` and `mlp_bias` are not supported in this family")
    return {
        "kind": "decoder",
        "layers": source["num_hidden_layers"],
        "d_model": source["hidden_size"],
        "h": heads,
        "h_kv": source.get("num_key_value_heads") or heads,
        "d_k": source.get("head_dim"),
        "d_ff": source["intermediate_size"],
        "vocab_size": source["vocab_size"],
        "positions": "rope",
        "max_positions": source.get("max_position_embeddings", 2048),
        "norm": "rmsnorm",
        "norm_eps": source.get("rms_norm_eps", 1e-6),
        "activation": _activation(source, "hidden_act", "silu"),
        "gated": True,
        "biases": "none",
        "tie_embeddings": source.get("tie_word_embeddings", False),
        "dropout": source.get("attention_dropout", 0.0),
        **_rope(source),
        **_token_ids(source),
    }


def _mistral(source: HuggingFaceFields) -> Fields:
    # Transformers' default when the key is absent; an explicit null means no window.
    return {**_llama(source), "window": source.get("sliding_window", 4096)}


def _qwen2(source: HuggingFaceFields) -> Fields:
    _refuse(source, "use_sliding_window")
    return {**_llama({**source, "attention_bias": False}), "biases": "qkv"}


def _shapetrace(source: HuggingFaceFields) -> Fields:
    skipped = {"model_type", "architectures", "transformers_version"}
    return {name: value for name, value in source.items() if name not in skipped}


FAMILIES: dict[str, Callable[[HuggingFaceFields], Fields]] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "llama": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "shapetrace": _shapetrace,
}


def _rope(source: HuggingFaceFields) -> Fields:
    """Rotary fields; transformers 4 and 5 put them in different places."""
    rope = {**_mapping(source, "rope_scaling"), **_mapping(source, "rope_parameters")}
    values: Fields = {"rope_base": rope.get("rope_theta", source.get("rope_theta", 10000.0))}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "llama3":
        values["rope_factor"] = rope["factor"]
        values["rope_low_factor"] = rope["low_freq_factor"]
        values["rope_high_factor"] = rope["high_freq_factor"]
        values["rope_original_positions"] = rope["original_max_position_embeddings"]
    elif kind != "default":
        raise ModelError(f"rope_type is {kind!r}; supported: default, llama3")
    return values


def _mapping(source: HuggingFaceFields, name: str) -> dict[str, Any]:
    value = source.get(name) or {}
    if not isinstance(value, dict):
        raise ModelError(f"`{name}` is {value!r}; it must be an object or null")
    return value


def _activation(source: HuggingFaceFields, name: str, default: str) -> str:
    value = source.get(name, default)
    if not isinstance(value, str) or value not in ACTIVATION_NAMES:
        raise ModelError(f"`{name}` is {value!r}: {did_you_mean(str(value), ACTIVATION_NAMES)}")
    return ACTIVATION_NAMES[value]


def _token_ids(source: HuggingFaceFields) -> Fields:
    """Special tokens; several ends of sequence count by the first, foreign ones not at all."""
    values: Fields = {}
    vocab_size = source["vocab_size"]
    if type(vocab_size) is not int:
        raise ModelError(f"`vocab_size` is {vocab_size!r}; it must be a whole number")
    for name in ("pad", "bos", "eos"):
        value = source.get(f"{name}_token_id")
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, int) and 0 <= first < vocab_size:
            values[f"{name}_id"] = first
    return values


def _refuse(source: HuggingFaceFields, *names: str) -> None:
    for name in names:
        if source.get(name):
            raise ModelError(f"`{name}` is {source[name]!r}, which is not supported")
