"""Totals of hand-built traces."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from shapetrace.cost import PARTS, part_of, peak, price, summarise
from shapetrace.records.trace import (
    OpRecord,
    ParameterRecord,
    Scope,
    StorageRecord,
    Trace,
)


def scope(parent, path, start, end, type_name="Linear", kind="module"):
    return Scope(parent, path, kind, type_name, "model.py", 1, start, end)


def mm(scope, at, n=1, phase="forward"):
    return OpRecord(
        "aten.mm.default", scope, at, ((n, 1), (1, 1)), ((n, 1),), "float32", phase=phase
    )


def other(scope, at, name="aten.relu.default"):
    return OpRecord(name, scope, at, ((1, 1),), ((1, 1),), "float32")


def parameter(path, *shape, storage, buffer=False, trainable=True):
    size = 4
    for length in shape:
        size *= length
    return ParameterRecord(
        path, shape, "float32", size, storage, trainable=trainable, buffer=buffer
    )


TRACE = Trace(
    "Toy",
    scopes=(
        scope(None, "", 0, 100, "Toy"),
        scope(0, "blocks.0", 1, 60, "Block"),
        scope(1, "blocks.0.attention", 2, 30, "Attention"),
        scope(2, "blocks.0.attention.rotate()", 3, 10, "rotate", "function"),
        scope(1, "blocks.0.feedforward", 31, 59, "FeedForward"),
        scope(0, "head", 61, 99),
    ),
    ops=(
        mm(3, 5, 1),
        mm(2, 20, 10),
        mm(4, 40, 100),
        other(4, 41),
        other(4, 42, "aten.linalg_svd.default"),
        other(1, 60, "aten.linalg_svd.default"),
        mm(5, 70, 1000),
        mm(0, 90, 10000, "backward"),
    ),
    storages=(
        StorageRecord(1000, "parameter", "cpu", 0),
        StorageRecord(10, "activation", "cpu", 3, 20),
        StorageRecord(20, "activation", "cpu", 20, 45),
        StorageRecord(5, "activation", "cpu", 40, 50),
        StorageRecord(7, "activation", "cpu", 45),
    ),
    parameters=(
        parameter("embedding.weight", 10, 4, storage=0),
        parameter("blocks.0.attention.query.weight", 4, 4, storage=1),
        parameter("blocks.0.attention.norm.weight", 4, storage=2),
        parameter("blocks.0.feedforward.up.weight", 8, 4, storage=3, trainable=False),
        parameter("head.weight", 10, 4, storage=0),
        parameter("rotary.table", 5, storage=4, buffer=True),
    ),
)


def test_flops_by_scope_of_its_own_operators():
    assert price(TRACE).own == (20000, 0, 20, 2, 200, 2000)


def test_children_and_own_make_the_parent():
    """Each call's operators are those between its start and its end, calls inside included."""
    prices = price(replace(TRACE, ops=TRACE.ops[:-1]))
    inclusive = [prices.between(scope.start, scope.end)[0] for scope in TRACE.scopes]
    assert inclusive == [2222, 222, 22, 2, 200, 2000]
    for index in range(len(TRACE.scopes)):
        children = sum(inclusive[i] for i, s in enumerate(TRACE.scopes) if s.parent == index)
        assert inclusive[index] == prices.own[index] + children
    assert inclusive[0] == sum(cost or 0 for cost in prices.flops)


def test_flops_of_a_statement_include_the_calls_in_it():
    prices = price(TRACE)
    assert prices.between(2, 40) == (222, True)
    assert prices.between(2, 41) == (222, True)
    assert prices.between(5, 20) == (20, True)
    assert prices.between(4, 5) == (2, True)
    assert prices.between(20, 20) == (0, True)


def test_what_has_no_formula_is_unknown_and_not_zero():
    prices = price(TRACE)
    assert prices.flops == (2, 20, 200, 0, None, None, 2000, 20000)
    assert prices.between(39, 42) == (200, False)
    assert prices.between(42, 59) == (0, True)
    assert prices.between(0, 100) == (22222, False)


def test_unmodelled_operators_are_counted_by_name():
    assert price(TRACE).unmodelled == (("aten.linalg_svd.default", 2),)


def test_summary():
    summary = summarise(TRACE)
    assert (summary.parameters, summary.trainable_parameters, summary.parameter_bytes) == (
        92,
        60,
        368,
    )
    assert dict(summary.parameters_by_part) == {
        "embedding": 40,
        "attention": 16,
        "feed-forward": 32,
        "norm": 4,
        "head": 0,
        "other": 0,
    }
    assert dict(summary.parameter_bytes_by_part)["embedding"] == 160
    assert summary.buffer_bytes == 20
    assert (summary.flops, summary.flops_forward, summary.flops_backward) == (22222, 2222, 20000)
    assert dict(summary.flops_by_part) == {
        "embedding": 0,
        "attention": 22,
        "feed-forward": 200,
        "norm": 0,
        "head": 2000,
        "other": 20000,
    }
    assert summary.peak_activation_bytes == 25
    assert [part for part, _ in summary.flops_by_part] == list(PARTS)


def test_peak_is_where_the_most_is_alive():
    """At 40 the block of 20 and the block of 5; at 45 the 20 is gone before the 7 comes."""
    found = peak(TRACE)
    assert (found.nbytes, found.at, found.scope) == (25, 40, 4)


def test_an_empty_trace():
    summary = summarise(Trace("nothing"))
    assert (summary.parameters, summary.flops, summary.peak_activation_bytes) == (0, 0, 0)
    assert summary.peak_activations.scope is None


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30), st.integers(1, 30))))
def test_peak_equals_the_sum_at_the_worst_clock(lives):
    storages = tuple(
        StorageRecord(size, "activation", "cpu", born, born + length)
        for size, born, length in lives
    )
    live = [sum(s.nbytes for s in storages if s.born <= at < s.died) for at in range(61)]
    found = peak(Trace("", storages=storages))
    assert found.nbytes == max(live)
    assert found.nbytes == 0 or found.at == live.index(max(live))


PATHS = {
    "embedding.tokens.weight": "embedding",
    "blocks.3.attention.query.weight": "attention",
    "blocks.3.cross_attention.output.weight": "attention",
    "blocks.3.attention.rotate()": "attention",
    "blocks.3.feedforward.up.weight": "feed-forward",
    "blocks.3.norm_attention.weight": "norm",
    "final_norm.weight": "norm",
    "head.weight": "head",
    "blocks.3": "other",
    "": "other",
    "transformer.wte.weight": "embedding",
    "transformer.h.0.attn.c_attn.weight": "attention",
    "transformer.h.0.attn.c_proj.weight": "attention",
    "transformer.h.0.mlp.c_fc.weight": "feed-forward",
    "transformer.h.0.ln_1.weight": "norm",
    "transformer.ln_f.bias": "norm",
    "lm_head.weight": "head",
    "model.embed_tokens.weight": "embedding",
    "model.layers.0.self_attn.q_proj.weight": "attention",
    "model.layers.0.post_attention_layernorm.weight": "norm",
    "bert.embeddings.LayerNorm.weight": "norm",
    "bert.embeddings.position_embeddings.weight": "embedding",
    "bert.encoder.layer.0.attention.output.dense.weight": "attention",
    "bert.encoder.layer.0.intermediate.dense.weight": "feed-forward",
    "cls.predictions.decoder.weight": "head",
    "encoder.block.0.layer.0.SelfAttention.q.weight": "attention",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": "attention",
    "encoder.block.0.layer.1.DenseReluDense.wi.weight": "feed-forward",
    "shared.weight": "embedding",
    "encoder.layers.0.linear1.weight": "feed-forward",
    "encoder.layers.0.self_attn.in_proj_weight": "attention",
    "patch_embed.proj.weight": "embedding",
    "layer1.0.conv1.weight": "other",
    "layer1.0.bn1.weight": "norm",
    "abnormal.weight": "other",
}


@pytest.mark.parametrize("path", PATHS)
def test_parts_by_path(path):
    assert part_of(path) == PATHS[path]


def test_parts_by_class_and_by_neighbour():
    assert part_of("a.b.weight", {"a": "BertAttention", "a.b": "Linear"}) == "attention"
    assert part_of("a.b.weight", {"a": "Stack", "a.b": "LayerNorm"}) == "norm"
    assert part_of("x.output.dense.weight", known={"x.output", "x.intermediate"}) == "feed-forward"
    assert part_of("x.output.dense.weight", known={"x.output"}) == "other"
