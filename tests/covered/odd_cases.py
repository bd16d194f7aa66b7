"""Parts of torch, and models that are odd in one way each, with what their definitions say.

FLOPs that FlopCounterMode cannot count (recurrent layers, fused paths) are closed forms:
one multiply-add is 2.
"""

from __future__ import annotations

from torch import nn

from tests.capture.models_under_test import CASES
from tests.covered import odd_models as m
from tests.covered.study import Case

BN = {"B": 2, "n": 3}


def odd(name, make, inputs, facts=None, flops=None, dims=None, hidden=()):
    return Case(
        name,
        make,
        inputs,
        (),
        "torch",
        facts or {},
        flops,
        dims=dims or BN,
        hidden=frozenset(hidden),
    )


def recurrent(gates: int, steps: int, width: int, hidden: int) -> int:
    """Every step multiplies input and state by every gate's matrices."""
    return 2 * 2 * steps * gates * hidden * (width + hidden)


def attention(width: int, sequence: int) -> int:
    """Four projections, the scores and the mix, for a batch of 2."""
    return 2 * (2 * sequence * 4 * width * width) + 2 * 2 * 2 * sequence * sequence * width


ODD = [
    odd(
        "lstm", lambda: nn.LSTM(4, 5, batch_first=True), m.one(2, 3, 4), flops=recurrent(4, 3, 4, 5)
    ),
    odd("gru", lambda: nn.GRU(4, 5, batch_first=True), m.one(2, 3, 4), flops=recurrent(3, 3, 4, 5)),
    odd("multihead attention", m.mha, lambda: m.one(2, 3, 8)() * 3, flops=attention(8, 3)),
    odd(
        "transformer encoder, fast path",
        m.encoder,
        m.one(2, 3, 8),
        flops=2 * (attention(8, 3) + 2 * 2 * 2 * 3 * 8 * 16),
        hidden=("LayerNorm", "Linear", "Dropout", "MultiheadAttention"),  # one operator runs all
    ),
    odd("custom autograd", m.CustomAutograd, m.one(2, 4), {("CustomAutograd.forward", "y"): "B 6"}),
    odd(
        "complex and fft",
        m.Spectral,
        m.one(2, 16),
        {("Spectral.forward", "spectrum"): "B n//2+1"},
        dims={"B": 2, "n": 16},
    ),
    odd(
        "sparse",
        m.Sparse,
        m.one(5, 4),
        {("Sparse.forward", "adjacency"): "N N"},
        0,
        {"N": 5},
    ),
    odd("nested", m.Nested, m.one(2, 3, 4), flops=0),
    odd("quantized", m.Quantized, m.one(2, 4), {("Quantized.forward", "q"): "B 4"}),
    odd("checkpointed", m.Checkpointed, m.one(2, 4), {("Checkpointed.block", "hidden"): "B 4"}),
    odd("functional_call, vmap", m.Functional, m.one(2, 4), {("Functional.forward", "z"): "2 B 6"}),
    odd("autocast", m.Autocast, m.one(2, 4), {("Autocast.forward", "y"): "B 6"}),
    odd("hooked", m.hooked, m.one(2, 4)),
    odd("scripted", m.Scripted, m.one(2, 4), {("Scripted.forward", "y"): "B 6"}),
    odd(
        "compiled",
        m.Compiled,
        m.one(2, 4),
        {("Compiled.forward", "y"): "B 6"},
        hidden=("OptimizedModule",),
    ),
    odd("decorated", m.Decorated, m.one(2, 4), {("Decorated.twice", "doubled"): "B 4"}),
    odd(
        "dataclass module",
        m.DataclassModule,
        m.one(2, 4),
        {("DataclassModule.forward", "y"): "B width"},
    ),
    odd("subclassed tensor", m.Subclassed, m.one(2, 4), {("Subclassed.forward", "z"): "B 4"}),
    odd("tied", m.Tied, m.ids, {("Tied.forward", "logits"): "B n 10"}, dims={"B": 2, "n": 5}),
    odd("none", m.Nothing, m.one(2, 4), {("Nothing.forward", "y"): "B 4"}),
    odd(
        "gather, scatter, einsum",
        m.Gathering,
        m.one(2, 4),
        {("Gathering.forward", "both"): "2 4 4"},
    ),
    *(
        odd(f"{name}, small", *CASES[name])
        for name in ("shared", "recursive", "answers", "in place", "closures", "generators")
    ),
]
