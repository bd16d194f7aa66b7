"""Attention: two implementations with equal results, and what the spec says of it."""

import itertools

import pytest
import torch

from shapetrace.model import ModelConfig, build
from shapetrace.model.layers import explicit, fused

KINDS = ("encoder", "decoder", "encoder-decoder")
POSITIONS = ("sinusoidal", "learned", "rope", "none")


def model_of(kind, **changes):
    values = {"layers": 2, "d_model": 32, "h": 4, "vocab_size": 50, "init_std": 0.3, **changes}
    torch.manual_seed(0)
    return build(ModelConfig(kind=kind, **values)).eval()


def inputs_of(kind, *, padded):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 50, (3, 9), generator=generator)
    target = torch.randint(0, 50, (3, 7), generator=generator)
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[1, 5:] = False
    mask[2] = False  # nothing to look at, anywhere
    target_mask = torch.ones(3, 7, dtype=torch.bool)
    target_mask[1, :2] = False  # padded on the left: the first rows see nothing
    if kind != "encoder-decoder":
        return (ids, mask) if padded else (ids,)
    return (ids, target, mask, target_mask) if padded else (ids, target)


VARIANTS = list(
    itertools.product(KINDS, POSITIONS, ({}, {"h_kv": 2}, {"h_kv": 1, "d_k": 6}), ("pre", "post"))
)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("kind", "positions", "heads", "norm_position"), VARIANTS)
def test_explicit_and_fused_agree(kind, positions, heads, norm_position, padded):
    changes = {"positions": positions, "norm_position": norm_position, **heads}
    model = model_of(kind, attention="fused", **changes)
    other = model_of(kind, attention="explicit", **changes)
    inputs = inputs_of(kind, padded=padded)
    with torch.no_grad():
        fused_output, explicit_output = model(*inputs), other(*inputs)
    assert not fused_output.isnan().any()
    torch.testing.assert_close(fused_output, explicit_output, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"gated": True, "activation": "silu", "norm": "rmsnorm", "biases": "none"},
        {"gated": True, "activation": "gelu", "biases": "qkv"},
        {"activation": "relu", "scale_embedding": True, "tie_embeddings": False},
        {"activation": "gelu-tanh", "window": 3},
    ],
)
@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_gradients_agree_and_reach_every_parameter(kind, changes):
    gradients = []
    for attention in ("fused", "explicit"):
        model = model_of(kind, attention=attention, **changes)
        model(*inputs_of(kind, padded=True)).logsumexp(-1).sum().backward()
        assert all(p.grad is not None for p in model.parameters())
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    torch.testing.assert_close(*gradients, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("attend", [explicit.attend_across, fused.attend_across])
def test_a_query_that_may_look_at_nothing_gets_zeros(attend):
    q, k, v = (torch.randn(2, 3, n, 8, requires_grad=True) for n in (4, 5, 5))
    visible = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    visible[0, 0, 2] = False
    out = attend(q, k, v, visible, 0.0)
    assert torch.equal(out[0, :, 2], torch.zeros(3, 8))
    assert (out[1] != 0).all()
    out.sum().backward()
    assert all(not t.grad.isnan().any() for t in (q, k, v))


def weights_of(q, k, visible):
    """The weights themselves: what attention takes from one-hot values."""
    m = k.shape[2]
    one_hot = torch.eye(m).expand(*k.shape[:2], m, m)
    return explicit.attend_across(q, k, one_hot, visible, 0.0)


def test_weights_of_each_query_sum_to_one():
    q, k = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    visible = torch.ones(2, 1, 5, 5, dtype=torch.bool).tril()
    for mask in (None, visible):
        weights = weights_of(q, k, mask)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))
        assert (weights >= 0).all()
    assert torch.equal(weights.triu(1), torch.zeros_like(weights))


def test_scores_are_scaled_so_that_their_variance_does_not_grow_with_d_k():
    torch.manual_seed(0)
    for d_k in (16, 256):
        q, k = torch.randn(2, 1, 4, 128, d_k).unbind(0)
        assert (q @ k.transpose(-2, -1)).var() == pytest.approx(d_k, rel=0.1)
        # The logarithm of the weights is the scores up to a constant per query.
        scores = weights_of(q, k, None).log()
        assert (scores - scores.mean(-1, keepdim=True)).var() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("positions", POSITIONS)
def test_only_positions_tell_an_order(positions):
    model = model_of("encoder", positions=positions)
    ids, order = torch.tensor([[3, 7, 11, 19, 23]]), torch.tensor([4, 2, 0, 1, 3])
    with torch.no_grad():
        moved, out = model(ids[:, order]), model(ids)[:, order]
    assert torch.allclose(moved, out, atol=1e-5) == (positions == "none")


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_no_future_token_changes_a_past_output(kind, attention):
    model = model_of(kind, attention=attention)
    *source, ids = inputs_of(kind, padded=False)
    other = ids.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 50
    with torch.no_grad():
        before, after = model(*source, ids), model(*source, other)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_a_window_forgets_what_is_farther_back():
    model = model_of("decoder", window=3, layers=1)
    ids = torch.arange(8)[None]
    other = ids.clone()
    other[0, 0] = 40
    with torch.no_grad():
        changed = (model(ids) - model(other)).abs().amax(-1)[0] > 1e-6
    assert changed.tolist() == [True, True, True, False, False, False, False, False]


def test_dropout_is_active_in_training_only():
    model = model_of("decoder", dropout=0.5)
    ids = torch.arange(6)[None]
    assert torch.equal(model(ids), model(ids))
    model.train()
    assert not torch.equal(model(ids), model(ids))


def test_loss_at_the_start_is_about_ln_vocab_size():
    model = model_of("decoder", init_std=0.02, vocab_size=1000)
    ids = torch.randint(0, 1000, (4, 32))
    logits = model(ids[:, :-1]).transpose(1, 2)
    loss = torch.nn.functional.cross_entropy(logits, ids[:, 1:])
    assert loss.item() == pytest.approx(torch.tensor(1000.0).log().item(), rel=0.02)
