"""The typed Transformer under the tracer: every tensor declared, every declaration true."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from shapetrace.capture import record
from shapetrace.capture.probing.probe import probe
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.subject import Subject
from shapetrace.model import ModelConfig, build
from shapetrace.naming.declared import declared_dims
from shapetrace.naming.name_trace import named

KINDS = ("tiny-encoder", "tiny-decoder", "tiny-encoder-decoder")
VARIANTS = (
    {},
    {"attention": "explicit"},
    {"attention": "explicit", "positions": "rope", "h_kv": 2},
    {"attention": "fused", "positions": "rope", "h_kv": 1, "norm": "rmsnorm", "gated": True},
    {"attention": "explicit", "d_k": 16, "positions": "sinusoidal", "norm_position": "post"},
    {"attention": "fused", "d_k": 16, "positions": "none", "h_kv": 2, "biases": "none"},
    {"attention": "explicit", "scale_embedding": True, "tie_embeddings": False, "dropout": 0.1},
)
TRAINED = {  # what only some kinds have
    "tiny-encoder": ({"head": "mlm"}, {"token_types": 2, "pooler": True, "embedding_norm": True}),
    "tiny-decoder": ({"window": 3}, {"window": 3, "attention": "explicit"}),
    "tiny-encoder-decoder": (),
}
CASES = [(kind, variant) for kind in KINDS for variant in (*VARIANTS, *TRAINED[kind])]


def given(config, *, masked, device=None, B=3, n=7, m=5):
    """Arguments of a forward; in an encoder-decoder the source has `m` tokens."""
    source = m if config.kind == "encoder-decoder" else n
    ids = {"token_ids": torch.ones(B, source, dtype=torch.long, device=device)}
    if config.kind == "encoder-decoder":
        ids["target_ids"] = torch.ones(B, n, dtype=torch.long, device=device)
    if masked:
        ids["mask"] = torch.ones(B, source, dtype=torch.bool, device=device)
        ids["mask"][0, -2:] = False
    return ids


@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
@pytest.mark.parametrize(("kind", "variant"), CASES, ids=str)
def test_every_tensor_of_the_model_is_declared_and_every_declaration_holds(kind, variant, masked):
    config = ModelConfig.from_preset(kind).replaced(variant)
    for training in (False, True):
        model = build(config).train(training)
        with torch.set_grad_enabled(training), record(model) as recording:
            model(**given(config, masked=masked))
        trace = recording.trace
        own = [r for r in trace.tensors if "/shapetrace/model/" in trace.sites[r.site].file]
        assert len(own) > 30
        undeclared = {
            (trace.sites[r.site].function, trace.sites[r.site].name, trace.sites[r.site].line)
            for r in own
            if r.declared is None
        }
        assert not undeclared
        assert {(r.declared.text, r.shape) for r in own if r.holds is not True} == set()


def subject(config):
    """The configuration's free sizes; the others follow from them."""
    names = ["d_model", "h", "d_ff", "vocab_size", "max_positions"]
    names += ["h_kv"] if config.grouped else []
    names += ["d_k"] if config.d_k * config.h != config.d_model else []
    integers = {name: getattr(config, name) for name in names}
    dims = {"B": 3, "n": 7} | ({"m": 5} if config.kind == "encoder-decoder" else {})

    def remade(sizes):
        changed = {name: size for name, size in sizes.items() if size != integers[name]}
        return build(config.replaced(changed)).eval()

    def arguments(sizes, _):
        return CallInputs(kwargs=given(config, masked=False, **sizes))

    return Subject(integers, dims, remade, arguments)


SAME = ({"n", "m"},)
"""Call-local names: what the decoder calls `m` is the encoder's `n`."""


@pytest.mark.parametrize(("kind", "variant"), list(itertools.product(KINDS, VARIANTS[:6])), ids=str)
def test_declared_names_are_what_the_probes_find(kind, variant):
    config = ModelConfig.from_preset(kind).replaced(variant)
    probing, wanted = probe(subject(config))
    model = build(config).eval()
    with torch.no_grad(), record(model, wanted=wanted) as recording:
        model(**given(config, masked=False))
    bare = recording.trace
    undeclared = tuple(replace(record_, declared=None) for record_ in bare.tensors)
    stripped = replace(bare, tensors=undeclared)
    compared = 0
    for record_, probed in zip(bare.tensors, named(stripped, probing).tensors, strict=True):
        stated = declared_dims(record_)
        if stated is None:
            continue
        for one, other in zip(stated, probed.dims, strict=True):
            if one is None:
                continue
            assert one.name == other.name or {one.name, other.name} in SAME, (
                record_.declared,
                probed.dims,
                bare.sites[record_.site],
            )
            compared += 1
    assert compared > 100
