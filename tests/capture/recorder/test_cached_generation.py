"""Generation by transformers, whose caches grow and change between equal layers."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from shapetrace.capture import record
from shapetrace.capture.recorder.assemble import UNSEEN
from shapetrace.cost import flops as price

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

SMALL = {"vocab_size": 60, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
LLAMA = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
GPT = {"n_embd": 16, "n_layer": 3, "n_head": 2}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
BART = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
OPT = {
    "hidden_size": 16,
    "ffn_dim": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "word_embed_proj_dim": 16,
}
MODELS = {
    "LlamaForCausalLM": ("LlamaConfig", LLAMA),
    "Qwen2ForCausalLM": ("Qwen2Config", LLAMA),
    "OPTForCausalLM": ("OPTConfig", OPT),
    "GPT2LMHeadModel": ("GPT2Config", GPT),
    "BartForConditionalGeneration": ("BartConfig", BART),
    "T5ForConditionalGeneration": ("T5Config", {**T5, "decoder_start_token_id": 0}),
}
WAYS = {
    "greedy": {"do_sample": False},
    "beams": {"do_sample": False, "num_beams": 3},
    "static cache": {"do_sample": False, "cache_implementation": "static"},
}


def built(name: str):
    torch.manual_seed(0)
    config, settings = MODELS[name]
    model = getattr(transformers, name)(getattr(transformers, config)(**SMALL, **settings)).eval()
    ids = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])

    def run(way):
        torch.manual_seed(0)
        mask = torch.ones_like(ids)
        return model.generate(ids, attention_mask=mask, max_new_tokens=3, **way)

    return model, run


def facts(trace):
    """A trace without its clocks: cycles of caches are freed when the collector comes by."""
    return (
        trace.sites,
        [(scope.path, scope.type_name) for scope in trace.scopes],
        [dataclasses.replace(op, at=0) for op in trace.ops],
        [dataclasses.replace(tensor, since=0, at=0) for tensor in trace.tensors],
        [(storage.nbytes, storage.kind) for storage in trace.storages],
    )


CASES = [(name, "greedy") for name in MODELS] + [
    ("LlamaForCausalLM", "beams"),
    ("LlamaForCausalLM", "static cache"),
    ("BartForConditionalGeneration", "beams"),
]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_generation_is_recorded_as_it_runs(name, way):
    model, run = built(name)
    expected = run(WAYS[way])
    with record(model) as fast:
        generated = run(WAYS[way])
    with record(model, repeats=False) as plain:
        run(WAYS[way])
    assert torch.equal(generated, expected)
    counter = FlopCounterMode(display=False)
    with counter:
        run(WAYS[way])
    assert all(op.name != UNSEEN for op in fast.trace.ops)
    assert facts(fast.trace) == facts(plain.trace)
    products = {"mm", "addmm", "bmm", "baddbmm"}
    flops = sum(price(op) or 0 for op in fast.trace.ops if op.name.split(".")[1] in products)
    counted = counter.get_flop_counts()["Global"]
    assert flops == sum(
        flops for op, flops in counted.items() if str(op).split(".")[-1] in products
    )
