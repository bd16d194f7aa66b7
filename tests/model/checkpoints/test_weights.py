"""Weights files: what is wrong with one is said, with the tensor's name."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from shapetrace.model import ModelError, from_pretrained
from shapetrace.model.files.shards import INDEX, SINGLE, weights_dtype

transformers = pytest.importorskip("transformers")


@pytest.fixture
def gpt2(tmp_path):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=37, n_embd=16, n_layer=2, n_head=2, n_positions=8, bos_token_id=1, eos_token_id=2
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    return tmp_path


def changed(directory, change):
    tensors = load_file(directory / SINGLE)
    change(tensors)
    save_file(tensors, directory / SINGLE)


def output(directory):
    with torch.no_grad():
        return from_pretrained(directory)(torch.arange(5)[None])


def test_names_with_and_without_the_prefix_are_the_same(gpt2):
    before = output(gpt2)
    assert any(name.startswith("transformer.") for name in load_file(gpt2 / SINGLE))

    def strip(tensors):
        for name in list(tensors):
            tensors[name.removeprefix("transformer.")] = tensors.pop(name)

    changed(gpt2, strip)
    assert torch.equal(output(gpt2), before)


def test_fixed_buffers_and_tied_copies_are_left_aside(gpt2):
    before = output(gpt2)

    def add(tensors):
        tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8)
        tensors["transformer.h.1.attn.masked_bias"] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()

    changed(gpt2, add)
    assert torch.equal(output(gpt2), before)


def test_a_missing_tensor_is_named(gpt2):
    changed(gpt2, lambda tensors: tensors.pop("transformer.h.1.mlp.c_fc.bias"))
    with pytest.raises(ModelError, match=r"no tensor 'h\.1\.mlp\.c_fc\.bias'"):
        from_pretrained(gpt2)


def test_a_surplus_tensor_is_named(gpt2):
    changed(gpt2, lambda tensors: tensors.update({"transformer.h.2.ln_1.bias": torch.ones(16)}))
    with pytest.raises(ModelError, match=r"has a tensor .*'transformer\.h\.2\.ln_1\.bias'"):
        from_pretrained(gpt2)


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("transformer.h.0.mlp.c_fc.weight", (64, 16), [16, 64]),
        ("transformer.h.0.attn.c_attn.weight", (16, 16), [16, 48]),
        ("transformer.h.0.attn.c_attn.bias", (47,), [48]),
        ("transformer.wpe.weight", (9, 16), [8, 16]),
    ],
)
def test_a_misshapen_tensor_is_named(gpt2, name, shape, wanted):
    changed(gpt2, lambda tensors: tensors.update({name: torch.zeros(shape)}))
    with pytest.raises(ModelError) as caught:
        from_pretrained(gpt2)
    for word in (repr(name), str(list(shape)), str(wanted)):
        assert word in str(caught.value)


@pytest.mark.parametrize("kept", [0, 4, 200, -100])
def test_a_cut_off_file_is_named(gpt2, kept):
    data = (gpt2 / SINGLE).read_bytes()
    (gpt2 / SINGLE).write_bytes(data[:kept])
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged or cut off"):
        from_pretrained(gpt2)


def test_missing_weights_and_directories_are_named(gpt2, tmp_path):
    (gpt2 / SINGLE).unlink()
    with pytest.raises(ModelError, match=r"no weights in .*expected model\.safetensors"):
        from_pretrained(gpt2)
    with pytest.raises(ModelError, match="is not a directory"):
        from_pretrained(tmp_path / "nowhere")
    (gpt2 / "config.json").unlink()
    with pytest.raises(ModelError, match=r"config\.json does not exist"):
        from_pretrained(gpt2)


@pytest.fixture
def sharded(gpt2):
    tensors = load_file(gpt2 / SINGLE)
    names = sorted(tensors)
    (gpt2 / SINGLE).unlink()
    places = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, gpt2 / file)
        places |= dict.fromkeys(part, file)
    (gpt2 / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return gpt2


def test_shards_load(sharded):
    theirs = transformers.GPT2LMHeadModel.from_pretrained(sharded).eval()
    with torch.no_grad():
        other = theirs(torch.arange(5)[None]).logits
    torch.testing.assert_close(output(sharded), other, atol=1e-4, rtol=0)


def test_a_missing_shard_is_named(sharded):
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model-00002-of-00002\.safetensors is missing"):
        from_pretrained(sharded)


def test_a_tensor_that_is_not_in_its_shard_is_named(sharded):
    index = json.loads((sharded / INDEX).read_text())
    index["weight_map"]["transformer.ln_f.more"] = "model-00001-of-00002.safetensors"
    (sharded / INDEX).write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"'transformer\.ln_f\.more' is not in"):
        from_pretrained(sharded)


def test_weights_take_the_dtype_asked_for(gpt2):
    assert next(from_pretrained(gpt2).parameters()).dtype == torch.float32
    half = from_pretrained(gpt2, dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_the_dtype_is_that_of_most_numbers(tmp_path, dtype):
    tensors = {
        "few": torch.zeros(3, dtype=torch.float32 if dtype != "float32" else torch.float16),
        "many": torch.zeros(4, 5, dtype=getattr(torch, dtype)),
        "steps": torch.zeros(100, dtype=torch.int64),
    }
    save_file(tensors, tmp_path / SINGLE)
    assert weights_dtype(tmp_path) == dtype


def test_weights_without_floating_point_have_no_dtype(tmp_path):
    save_file({"q": torch.zeros(4, dtype=torch.int8)}, tmp_path / SINGLE)
    assert weights_dtype(tmp_path) is None
