"""Configurations that no model can have: each a `ModelError` of one line, none a crash."""

import json

import pytest

from shapetrace.model import ModelConfig, ModelError
from shapetrace.model.config import field_types

SMALL = {"kind": "decoder", "layers": 1, "d_model": 16, "h": 4, "vocab_size": 256}
ODD = (
    *(None, True, -1, 0, 1.5, "x", "", [], [1], {}, {"a": 1}),
    *(10**9, 10**30, 10**400, float("nan"), float("inf"), 1e308, "9" * 5000),
)
FAMILIES = {
    "gpt2": {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 99, "n_inner": 8}
    | {"activation_function": "gelu", "eos_token_id": 1, "resid_pdrop": 0.1},
    "bert": {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}
    | {"intermediate_size": 8, "vocab_size": 99, "architectures": ["BertForMaskedLM"]}
    | {"hidden_act": "gelu", "type_vocab_size": 2, "pad_token_id": 0},
    "llama": {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}
    | {"intermediate_size": 8, "vocab_size": 99, "rope_scaling": None, "head_dim": 8}
    | {"rope_parameters": {"rope_type": "default"}, "num_key_value_heads": 1},
    "mistral": {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}
    | {"intermediate_size": 8, "vocab_size": 99, "sliding_window": 4, "bos_token_id": [1, 2]},
}


def is_fine_or_one_line(make):
    """The configuration, or None where it is refused in one line."""
    try:
        return make()
    except ModelError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 600
    return None


@pytest.mark.parametrize("name", sorted(field_types()))
def test_any_value_of_a_field_is_taken_or_refused(name):
    for value in ODD:
        made = is_fine_or_one_line(
            lambda value=value: ModelConfig.from_dict({**SMALL, name: value})
        )
        if made is not None:
            json.dumps(made.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", sorted(field_types()))
def test_any_text_for_a_field_is_taken_or_refused(name):
    config = ModelConfig(**SMALL)
    for value in ("", " ", "-1", "1e400", "nan", "inf", "true", "x" * 9999, "9" * 5000, "1_0"):
        is_fine_or_one_line(lambda value=value: config.replaced({name: value}))


@pytest.mark.parametrize("family", FAMILIES)
def test_any_value_in_a_hugging_face_file_is_taken_or_refused(tmp_path, family):
    whole = {"model_type": family, **FAMILIES[family]}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(whole))
    ModelConfig.from_file(path)
    for name in whole:
        for value in ODD[:-1]:
            path.write_text(json.dumps({**whole, name: value}))
            is_fine_or_one_line(lambda: ModelConfig.from_file(path))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", '{"layers": ' + "9" * 5000 + "}", "is not valid JSON"),
        ("a.toml", "layers = " + "9" * 5000, "is not valid TOML"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.toml", "a = " + "[" * 20_000, "nested too deeply"),
        ("a.json", '{"h": 1, "h": 2}', "'h' stands twice"),
        ("a.toml", "h = 1\nh = 2", "not valid TOML"),
        ("a.json", "\0", "not valid JSON"),
    ],
    ids=range(7),
)
def test_a_file_that_is_broken_in_some_way(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(ModelError, match=words):
        ModelConfig.from_file(tmp_path / name)


@pytest.mark.parametrize("name", ["x\0.toml", "a" * 400 + ".toml", "a/" * 3000 + "x.json", "."])
def test_a_name_that_no_file_can_have(name):
    with pytest.raises(ModelError) as caught:
        ModelConfig.from_file(name)
    assert "not valid" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(SMALL).encode())
    assert ModelConfig.from_file(path) == ModelConfig(**SMALL)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": 10_001}, "`layers` is 10,001; it must be at most 10,000"),
        ({"vocab_size": 2**28 + 1}, "it must be at most 268,435,456"),
        ({"d_k": 2**27}, "`h` times `d_k` is 536,870,912"),
        ({"norm_eps": 10**400}, "`norm_eps` is inf; it must be a finite number"),
        ({"kind": "Decoder"}, "did you mean 'decoder'?"),
    ],
    ids=str,
)
def test_what_is_too_much_is_said(change, words):
    with pytest.raises(ModelError) as caught:
        ModelConfig(**{**SMALL, **change})
    assert words in str(caught.value)
