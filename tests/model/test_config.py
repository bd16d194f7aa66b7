"""Configurations: read from anywhere, and every bad one is one clear line."""

import json
import subprocess
import sys

import pytest

from shapetrace.model import ModelConfig, ModelError, presets

SMALL = {"kind": "decoder", "layers": 2, "d_model": 32, "h": 4, "vocab_size": 50}


def small(**changes):
    return ModelConfig(**{**SMALL, **changes})


def test_fields_left_out_follow_from_the_others():
    config = small()
    assert (config.h_kv, config.d_k, config.d_ff, config.head) == (4, 8, 128, "lm")
    assert small(kind="encoder").head == "none"
    assert small(kind="encoder-decoder").decoder_layers == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "decodr"}, ["`kind` is 'decodr'", "encoder-decoder", "did you mean 'decoder'"]),
        ({"h": 5}, ["`h` is 5", "does not divide `d_model` (32)", "`d_k`"]),
        ({"h": 0}, ["`h` is 0"]),
        ({"h_kv": 3}, ["`h_kv` is 3", "does not divide `h` (4)"]),
        ({"h_kv": 0}, ["`h_kv` is 0", "at least 1"]),
        ({"layers": -1}, ["`layers` is -1", "at least 1"]),
        ({"vocab_size": 0}, ["`vocab_size` is 0"]),
        ({"d_ff": -4}, ["`d_ff` is -4"]),
        ({"max_positions": 0}, ["`max_positions` is 0"]),
        ({"window": 0}, ["`window` is 0"]),
        ({"window": 4, "kind": "encoder"}, ["`window`", "'encoder'"]),
        ({"layers": "2"}, ["`layers` is '2'", "a whole number"]),
        ({"layers": 2.0}, ["`layers` is 2.0", "a whole number"]),
        ({"layers": True}, ["`layers` is True", "a whole number"]),
        ({"gated": 1}, ["`gated` is 1", "true or false"]),
        ({"dropout": 1.0}, ["`dropout` is 1.0", "below 1"]),
        ({"dropout": float("nan")}, ["`dropout` is nan"]),
        ({"norm_eps": 0.0}, ["`norm_eps` is 0.0", "positive"]),
        ({"rope_base": float("inf")}, ["`rope_base` is inf"]),
        ({"rope_low_factor": 9.0}, ["`rope_low_factor` is 9.0", "`rope_high_factor` (4.0)"]),
        ({"positions": "rope", "d_k": 7}, ["`d_k` is 7", "even"]),
        ({"d_model": 33, "h": 3}, ["`d_model` is 33", "even"]),
        ({"head": "mlm"}, ["`head` is 'mlm'", "'decoder'"]),
        ({"head": "lm", "kind": "encoder"}, ["`head` is 'lm'", "'encoder'"]),
        ({"pooler": True}, ["`pooler` needs an encoder"]),
        ({"token_types": 2}, ["`token_types` needs an encoder"]),
        ({"token_types": -1}, ["`token_types` is -1"]),
        ({"eos_id": 50}, ["`eos_id` is 50", "vocabulary of 50"]),
        ({"norm": "layer_norm"}, ["`norm` is 'layer_norm'", "layernorm, rmsnorm"]),
        ({"attention": "flash"}, ["`attention` is 'flash'", "explicit, fused"]),
    ],
)
def test_a_bad_value_is_one_clear_line(changes, words):
    with pytest.raises(ModelError) as caught:
        small(**changes)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"h": "8"}, "h_kv", 8),
        ({"h": "8"}, "d_k", 4),
        ({"d_model": "64"}, "d_k", 16),
        ({"d_model": "64", "d_k": "8"}, "d_k", 8),
        ({"layers": "3"}, "decoder_layers", 3),
        ({"kind": "encoder"}, "head", "none"),
        ({"gated": "true"}, "gated", True),
        ({"gated": "No"}, "gated", False),
        ({"window": "none"}, "window", None),
        ({"window": "7"}, "window", 7),
        ({"dropout": "0.25"}, "dropout", 0.25),
        ({"norm": "rmsnorm"}, "norm", "rmsnorm"),
        ({"layers": 5}, "layers", 5),
    ],
)
def test_replaced_parses_by_the_fields_type(changes, field, value):
    got = getattr(small().replaced(changes), field)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"h_kb": "1"}, ["`h_kb`", "did you mean 'h_kv'"]),
        ({"h": "four"}, ["`h` is 'four'", "a whole number"]),
        ({"gated": "maybe"}, ["`gated` is 'maybe'", "true or false"]),
        ({"positions": "ropes"}, ["`positions` is 'ropes'", "sinusoidal, learned, rope, none"]),
        ({"window": "wide"}, ["`window` is 'wide'", "a whole number"]),
    ],
)
def test_replaced_names_the_field_and_what_it_takes(changes, words):
    with pytest.raises(ModelError) as caught:
        small().replaced(changes)
    for word in words:
        assert word in str(caught.value)


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ModelError, match=r"no preset 'gpt-2': did you mean .*'gpt2'"):
        ModelConfig.from_preset("gpt-2")


@pytest.mark.parametrize("name", presets())
def test_every_preset_survives_its_own_dictionary(name):
    config = ModelConfig.from_preset(name)
    assert ModelConfig.from_dict(config.to_dict()) == config


def test_toml_and_json_files_say_the_same(tmp_path):
    toml, js = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in SMALL.items()))
    js.write_text(json.dumps(SMALL))
    assert ModelConfig.from_file(toml) == ModelConfig.from_file(js) == small()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "kind = 'decoder'\nlayers = = 2\n", ["a.toml is not valid TOML", "line 2"]),
        ("a.json", '{"kind": "decoder",\n "layers": }', ["a.json is not valid JSON", "line 2"]),
        ("a.json", "[]", ["must hold an object"]),
        ("a.json", '{"kind": "decoder"}', ["field `layers` is missing"]),
        ("a.json", '{"layer": 1}', ["no field `layer`", "'layers'"]),
        ("a.json", json.dumps({**SMALL, "h": 5}), ["a.json: `h` is 5"]),
        ("a.json", '{"model_type": "gpt3"}', ["no model_type 'gpt3'", "'gpt2'"]),
        ("a.json", '{"model_type": "gpt2"}', ["field `n_layer` is missing"]),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelError) as caught:
        ModelConfig.from_file(tmp_path / name)
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path):
    with pytest.raises(ModelError, match="does not exist"):
        ModelConfig.from_file(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"kind = '\xff'")
    with pytest.raises(ModelError, match="not UTF-8"):
        ModelConfig.from_file(tmp_path / "latin.toml")


def test_unsupported_rotary_scaling_is_refused(tmp_path):
    source = {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "vocab_size": 50,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
    }
    (tmp_path / "config.json").write_text(json.dumps(source))
    with pytest.raises(ModelError, match="rope_type is 'yarn'; supported: default, llama3"):
        ModelConfig.from_file(tmp_path)


def test_configurations_need_no_torch():
    code = (
        "import sys; from shapetrace.model import ModelConfig, presets;"
        "[ModelConfig.from_preset(name) for name in presets()];"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
