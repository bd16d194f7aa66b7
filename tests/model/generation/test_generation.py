"""Generation chooses what transformers' chooses, and a batch what each text chooses alone."""

import math
from pathlib import Path

import pytest
import torch

from shapetrace.model import ModelConfig, ModelError, build, from_pretrained
from shapetrace.model.generation import GenerationInput, Sampling, generate_tokens
from shapetrace.model.generation.sampling import draw, filtered

transformers = pytest.importorskip("transformers")
process = pytest.importorskip("transformers.generation.logits_process")
STORIES = Path(__file__).parents[3] / "../shared/data/stories260k"
SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": None,
}


def theirs(name):
    t = transformers
    gpt2 = {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
    made = {
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(**gpt2, bos_token_id=1, eos_token_id=None)),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**SIZES)),
        "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(**SIZES, sliding_window=9)),
    }
    torch.manual_seed(0)
    model = made[name]().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def their_greedy(model, ids, count):
    made = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.int64),
        max_new_tokens=count,
        do_sample=False,
        pad_token_id=0,
    )
    return made[0, len(ids) :].tolist()


@pytest.mark.parametrize("attention", ["fused", "explicit"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_greedy_tokens_are_theirs(tmp_path, name, attention):
    their_model = theirs(name)
    their_model.save_pretrained(tmp_path)
    config = ModelConfig.from_file(tmp_path).replaced({"attention": attention})
    our_model = from_pretrained(tmp_path, config)
    ids = [5, 17, 3, 88, 42]
    wanted = their_greedy(their_model, ids, 40)
    made = generate_tokens(our_model, GenerationInput(prompts=[ids], max_new_tokens=40))
    assert list(made.rows[0]) == wanted
    assert len(set(wanted)) > 1  # something happens


@pytest.mark.skipif(not STORIES.is_dir(), reason="the trained checkpoint stories260k is absent")
def test_greedy_story_is_theirs():
    their_model = transformers.LlamaForCausalLM.from_pretrained(STORIES).eval()
    ids = [1, 403, 407, 261, 378]
    wanted = their_greedy(their_model, ids, 200)
    made = generate_tokens(
        from_pretrained(STORIES), GenerationInput(prompts=[ids], max_new_tokens=200)
    )
    assert list(made.rows[0])[: len(wanted)] == wanted
    assert len(wanted) == 200


SAMPLINGS = (
    Sampling(temperature=0.7),
    Sampling(temperature=1.8),
    Sampling(top_k=5),
    Sampling(top_k=1000),
    Sampling(top_p=0.4),
    Sampling(top_p=1.0),
    Sampling(temperature=1.3, top_k=20, top_p=0.8),
)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_filtered_distributions_are_theirs(sampling):
    torch.manual_seed(0)
    logits = torch.randn(4, 200) * 3
    scores = logits
    if sampling.temperature is not None:
        scores = process.TemperatureLogitsWarper(sampling.temperature)(None, scores)
    if sampling.top_k is not None:
        scores = process.TopKLogitsWarper(sampling.top_k)(None, scores)
    if sampling.top_p is not None and sampling.top_p < 1:
        scores = process.TopPLogitsWarper(sampling.top_p)(None, scores)
    ours = filtered(logits, sampling).softmax(-1)
    torch.testing.assert_close(ours, scores.softmax(-1), atol=1e-7, rtol=1e-5)


def test_draws_follow_the_filtered_distribution():
    torch.manual_seed(0)
    logits = filtered(torch.randn(1, 12) * 1.5, Sampling(temperature=0.9, top_k=8, top_p=0.95))
    expected = logits.softmax(-1)[0].double()
    generator = torch.Generator().manual_seed(7)
    count = 6000
    rows = logits.expand(count, -1)
    drawn = draw(rows, [generator] * count)
    seen = torch.bincount(drawn, minlength=12).double()
    possible = expected > 0
    assert not seen[~possible].any()
    wanted = expected[possible] * count
    statistic = float(((seen[possible] - wanted) ** 2 / wanted).sum())
    freedom = int(possible.sum()) - 1
    # Wilson and Hilferty 1931: the cube root of chi-squared over its freedom is about normal.
    mean = 1 - 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - mean) / math.sqrt(2 / (9 * freedom))
    assert z < 3.1  # one in a thousand


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = ModelConfig(
        kind="decoder",
        layers=2,
        d_model=32,
        h=4,
        vocab_size=60,
        positions="learned",
        max_positions=40,
        init_std=0.3,
    )
    return build(config).eval()


PROMPTS = ([3, 1, 4, 1, 5, 9, 2], [6, 5], [3])


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=3)], ids=str)
def test_a_batch_gives_each_what_it_gives_alone(model, sampling, cache):
    together = generate_tokens(
        model, GenerationInput(prompts=PROMPTS, max_new_tokens=20, sampling=sampling, cache=cache)
    )
    alone = [
        generate_tokens(
            model, GenerationInput(prompts=[prompt], max_new_tokens=20, sampling=sampling)
        )
        for prompt in PROMPTS
    ]
    assert together.rows == tuple(made.rows[0] for made in alone)


def test_an_encoder_decoder_batch_gives_each_what_it_gives_alone():
    torch.manual_seed(0)
    config = ModelConfig(
        kind="encoder-decoder", layers=2, d_model=32, h=4, vocab_size=60, init_std=0.3
    )
    model = build(config).eval()
    rows = {
        cache: generate_tokens(
            model, GenerationInput(prompts=PROMPTS, max_new_tokens=12, start_id=7, cache=cache)
        ).rows
        for cache in (True, False)
    }
    alone = [
        generate_tokens(model, GenerationInput(prompts=[p], max_new_tokens=12, start_id=7)).rows[0]
        for p in PROMPTS
    ]
    assert rows[True] == rows[False] == tuple(alone)


def test_the_seed_decides(model):
    def made(seed, samples=1):
        sampling = Sampling(temperature=1.0, seed=seed)
        request = GenerationInput(
            prompts=[[3, 1]], max_new_tokens=12, sampling=sampling, samples=samples
        )
        return generate_tokens(model, request).rows

    assert made(5) == made(5)
    assert made(5) != made(6)
    several = made(5, samples=3)
    assert len(set(several)) == 3
    assert several[0] == made(5)[0]


def test_a_stop_token_ends_a_text(model):
    free = generate_tokens(model, GenerationInput(prompts=PROMPTS, max_new_tokens=20)).rows
    stop = free[0][4]
    heard = []
    stopped = generate_tokens(
        model, GenerationInput(prompts=PROMPTS, max_new_tokens=20, stop_ids=[stop]), heard.append
    ).rows
    for row, whole in zip(stopped, free, strict=True):
        end = whole.index(stop) + 1 if stop in whole else 20
        assert row == whole[:end]
    assert heard[-1].count(None) == 3 - sum(len(row) == len(heard) for row in stopped)


def test_random_state_and_model_are_left_alone(model):
    state = torch.get_rng_state()
    generate_tokens(
        model, GenerationInput(prompts=[[1]], max_new_tokens=3, sampling=Sampling(temperature=1.0))
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in model.parameters())


REFUSED = (
    (GenerationInput(prompts=[[]], max_new_tokens=3), "a prompt is empty"),
    (GenerationInput(prompts=[], max_new_tokens=3), "a prompt is empty"),
    (
        GenerationInput(prompts=[[1] * 41], max_new_tokens=1),
        "41 tokens, and the model 40 positions",
    ),
    (GenerationInput(prompts=[[1] * 30], max_new_tokens=12), "need 41 positions"),
    (GenerationInput(prompts=[[1]], max_new_tokens=0), "at least 1 new token"),
)


@pytest.mark.parametrize(("request_", "words"), REFUSED)
def test_what_cannot_be_is_refused_before_it_starts(model, request_, words):
    with pytest.raises(ModelError, match=words):
        generate_tokens(model, request_, lambda _: pytest.fail("it started"))


def test_all_positions_can_be_used(model):
    made = generate_tokens(model, GenerationInput(prompts=[[1] * 30], max_new_tokens=11))
    assert len(made.rows[0]) == 11


def test_an_encoder_is_refused():
    model = build(ModelConfig.from_preset("tiny-encoder"))
    with pytest.raises(ModelError, match="generation needs a decoder"):
        generate_tokens(model, GenerationInput(prompts=[[1]], max_new_tokens=1))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"temperature": 0.0}, "temperature is 0; it must be above 0 .*choose greedy"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top-p is 0"),
        ({"top_p": 1.1}, "top-p is 1.1"),
        ({"top_p": float("nan")}, "top-p is nan"),
        ({"top_k": 0}, "top-k is 0"),
        ({"temperature": float("inf")}, "temperature is inf; it must be finite"),
        ({"seed": -1}, "seed -1: give a whole number from 0 to 18446744073709551615"),
        ({"seed": 1 << 64}, "seed 18446744073709551616: give a whole number from 0 to"),
    ],
)
def test_sampling_refuses_what_cannot_be(values, words):
    with pytest.raises(ModelError, match=words):
        Sampling(**values)


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-60, 1e38])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_no_temperature_makes_chances_that_are_no_numbers(temperature, dtype):
    logits = torch.tensor([[1.0, 30.0, -20.0, 29.0]], dtype=dtype)
    chances = filtered(logits, Sampling(temperature=temperature)).double().softmax(-1)
    wanted = (logits.double() - 30).div(temperature).softmax(-1)
    torch.testing.assert_close(chances, wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rope", "none"])
def test_unequal_prompts_run_in_every_dtype(dtype, positions):
    config = ModelConfig.from_preset("tiny-decoder").replaced({"positions": positions})
    request = GenerationInput(prompts=[[1, 2, 3], [4]], max_new_tokens=3, sampling=Sampling())
    made = generate_tokens(build(config, dtype=dtype).eval(), request)
    assert [len(row) for row in made.rows] == [3, 3]
