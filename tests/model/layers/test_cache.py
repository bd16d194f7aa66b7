"""The key/value cache changes nothing but the time."""

import itertools

import pytest
import torch

from shapetrace.model import ModelConfig, build
from shapetrace.model.layers.cache import Cache

SIZES = {"layers": 2, "d_model": 32, "h": 4, "vocab_size": 50, "init_std": 0.2}


def cache_of(model, B, room, padding=None):
    return Cache(model.config, B, room, next(model.parameters()), padding)


def stepwise(model, ids, cache, first):
    """The scores after the first tokens, and after each one more."""
    yield model.extend(ids[:, :first], cache)
    for place in range(first, ids.shape[1]):
        yield model.extend(ids[:, place : place + 1], cache)


VARIANTS = list(
    itertools.product(
        ("learned", "sinusoidal", "rope", "none"), ("explicit", "fused"), (4, 2, 1), (None, 5)
    )
)


@pytest.mark.parametrize(("positions", "attention", "h_kv", "window"), VARIANTS)
@torch.no_grad()
def test_cached_scores_are_the_recomputed_ones(positions, attention, h_kv, window):
    torch.manual_seed(0)
    config = ModelConfig(
        kind="decoder",
        positions=positions,
        attention=attention,
        h_kv=h_kv,
        window=window,
        **SIZES,
    )
    model = build(config).eval()
    ids = torch.randint(0, 50, (2, 12))
    whole = model(ids)
    room = 4  # too little on purpose: the memory has to be doubled on the way
    for place, scores in enumerate(stepwise(model, ids, cache_of(model, 2, room), 5), 4):
        torch.testing.assert_close(scores, whole[:, place], atol=1e-5, rtol=0)
    padded = torch.cat((torch.zeros(2, 3, dtype=torch.int64), ids), dim=1)
    padded[0] = torch.cat((ids[0], ids[0, :3]))
    alone = model(padded[:1])
    for place, scores in enumerate(stepwise(model, padded, cache_of(model, 2, 15, [0, 3]), 5), 4):
        torch.testing.assert_close(scores[0], alone[0, place], atol=1e-5, rtol=0)
        torch.testing.assert_close(scores[1], whole[1, place - 3], atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("h_kv", [4, 2])
@pytest.mark.parametrize("attention", ["explicit", "fused"])
@torch.no_grad()
def test_cached_scores_of_an_encoder_decoder(attention, h_kv, norm_position):
    torch.manual_seed(0)
    config = ModelConfig(
        kind="encoder-decoder",
        attention=attention,
        h_kv=h_kv,
        norm_position=norm_position,
        **SIZES,
    )
    model = build(config).eval()
    source, target = torch.randint(0, 50, (2, 7)), torch.randint(0, 50, (2, 9))
    mask = torch.ones(2, 7).bool()
    mask[1, 4:] = False
    whole = model(source, target, mask)
    cache = cache_of(model, 2, 9)
    model.read(source, mask, cache)
    for place, scores in enumerate(stepwise(model, target, cache, 1)):
        torch.testing.assert_close(scores, whole[:, place], atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_source_is_projected_once():
    model = build(ModelConfig(kind="encoder-decoder", **SIZES)).eval()
    cache = cache_of(model, 1, 4)
    model.read(torch.tensor([[1, 2, 3]]), None, cache)
    model.extend(torch.tensor([[1]]), cache)
    before = [source.k for source in cache.sources]
    model.extend(torch.tensor([[2]]), cache)
    assert all(source.k is k for source, k in zip(cache.sources, before, strict=True))


@pytest.mark.parametrize("h_kv", [4, 2, 1])
@torch.no_grad()
def test_bytes_are_the_closed_form(h_kv):
    config = ModelConfig(kind="decoder", h_kv=h_kv, **SIZES)
    model = build(config).eval()
    cache = cache_of(model, 3, 20)
    m = 0
    for n in (5, 1, 1, 2):
        model.extend(torch.randint(0, 50, (3, n)), cache)
        m += n
        assert cache.nbytes == 2 * config.layers * 3 * h_kv * m * config.d_k * 4


@torch.no_grad()
def test_a_step_copies_nothing_of_what_is_kept():
    model = build(ModelConfig(kind="decoder", **SIZES)).eval()
    cache = cache_of(model, 1, 10)
    places = [layer.k.data_ptr() for layer in cache.layers]
    for _ in range(10):
        model.extend(torch.tensor([[1]]), cache)
    assert [layer.k.data_ptr() for layer in cache.layers] == places
