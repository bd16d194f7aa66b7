"""Traces and reports built by hand: no run, no torch."""

from dataclasses import replace
from math import prod

import pytest

from shapetrace.dims import Dim
from shapetrace.records.trace import (
    Failure,
    OpRecord,
    ParameterRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
    Trace,
)
from shapetrace.report.document import build_report

SIZES = {"B": 2, "n": 16, "d_model": 64, "h": 4, "d_k": 16, "d_ff": 256, "vocab_size": 512}
TEXT = ("Once", " upon", " a", ' "time"\n')


class Writer:
    """Writes a trace down as a run would: calls entered and left, values and operators."""

    def __init__(self):
        self.clock = 0
        self.sites, self.scopes, self.tensors, self.ops = [], [], [], []
        self.storages, self.parameters = [], []
        self.open = []

    def tick(self):
        self.clock += 1
        return self.clock

    def enter(self, path, type_name, kind="module"):
        parent = self.open[-1] if self.open else None
        start = self.tick()
        self.scopes.append(Scope(parent, path, kind, type_name, "model.py", 1, start, start))
        self.open.append(len(self.scopes) - 1)

    def leave(self, *, failed=False):
        index = self.open.pop()
        self.scopes[index] = replace(self.scopes[index], end=self.tick(), failed=failed)

    def op(self, name="aten.mm.default", flops=0):
        """An operator; by default a matrix product of that many FLOPs (k x 1 by 1 x 1)."""
        k = flops // 2
        inputs, outputs = ((k, 1), (1, 1)), ((k, 1),)
        self.ops.append(
            OpRecord(name, self.open[-1], self.tick(), inputs, outputs, "float32", nbytes=4 * k)
        )

    def parameter(self, path, *shape):
        nbytes = 4 * prod(shape)
        self.storages.append(StorageRecord(nbytes, "parameter", "cpu", 0))
        self.parameters.append(
            ParameterRecord(path, shape, "float32", nbytes, len(self.storages) - 1)
        )

    def value(self, name, dims, kind="local", since=None, storage=None, dtype="float32", **site):
        axes = dims.split()
        shape = tuple(SIZES[axis] if axis in SIZES else int(axis) for axis in axes)
        nbytes = prod(shape) * (8 if dtype == "int64" else 4)
        if storage is None:
            storage = len(self.storages)
            self.storages.append(StorageRecord(nbytes, "activation", "cpu", self.clock))
        self.sites.append(
            Site("shapetrace/model/model.py", 10 + len(self.sites), "f", name, kind, **site)
        )
        since = self.clock if since is None else since
        self.tensors.append(
            TensorRecord(
                site=len(self.sites) - 1,
                scope=self.open[-1],
                since=since,
                at=self.tick(),
                shape=shape,
                dtype=dtype,
                device="cpu",
                nbytes=nbytes,
                storage=storage,
                dims=tuple(Dim(axis, "declared") for axis in axes),
            )
        )
        return storage

    def made(self, name, dims, flops=0, op="aten.mm.default", **more):
        """A local and the operator that made it."""
        since = self.clock
        self.op(op, flops)
        return self.value(name, dims, since=since, **more)

    def trace(self, **fields):
        return Trace(
            target="Decoder",
            sites=tuple(self.sites),
            scopes=tuple(self.scopes),
            tensors=tuple(self.tensors),
            ops=tuple(self.ops),
            storages=tuple(self.storages),
            parameters=tuple(self.parameters),
            **fields,
        )


def write_attention(run, path, x):
    run.enter(path, "Attention")
    run.value("x", "B n d_model", "argument", storage=x)
    for name in ("q", "k", "v"):
        run.made(name, "B h n d_k", flops=262_144)
    run.value("input", "B n d_model", "argument", storage=x, internal=True)
    run.made("scores", "B h n n", flops=65_536)
    run.made("weights", "B h n n", op="aten._softmax.default")
    run.made("head_output", "B h n d_k", flops=65_536)
    out = run.made("concat", "B n d_model")
    run.value("return", "B n d_model", "return", storage=out)
    run.leave()
    return out


def write_block(run, path, x):
    run.enter(path, "Block")
    run.value("x", "B n d_model", "argument", storage=x)
    since = run.clock
    out = write_attention(run, f"{path}.attention", x)
    run.value("attended", "B n d_model", since=since, storage=out)
    run.enter(f"{path}.feed_forward", "FeedForward")
    run.made("ffn_hidden", "B n d_ff", flops=1_048_576)
    out = run.made("return", "B n d_model", flops=1_048_576, kind="return")
    run.leave()
    run.value("return", "B n d_model", "return", storage=out)
    run.leave()
    return out


def nested():
    run = Writer()
    run.enter("", "Decoder")
    run.value("token_ids", "B n", "argument", dtype="int64")
    x = run.made("x", "B n d_model", op="aten.embedding.default")
    for layer in range(3):
        since = run.clock
        x = write_block(run, f"blocks.{layer}", x)
        run.value("x", "B n d_model", since=since, storage=x)
    logits = run.made("logits", "B n vocab_size", flops=2_097_152)
    run.value("return", "B n vocab_size", "return", storage=logits)
    run.leave()
    tokens = tuple(zip(TEXT, (403, 407, 261, 378), strict=True))
    run.parameter("token_embedding.weight", 512, 64)
    for layer in range(3):
        run.parameter(f"blocks.{layer}.attention.query.weight", 64, 64)
        run.parameter(f"blocks.{layer}.feed_forward.up.weight", 256, 64)
    config = (("d_model", 64), ("h", 4), ("tied", True))
    return run.trace(
        config=config, sizes=(("B", 2), ("n", 16)), tokens=(tokens,), wall_time=0.00153
    )


def reused():
    """One linear layer called twice, by one name."""
    run = Writer()
    run.enter("", "Twice")
    x = run.value("x", "B d_model", "argument")
    for name in ("once", "again"):
        since = run.clock
        run.enter("linear", "Linear")
        run.value("input", "B d_model", "argument", storage=x)
        x = run.made("return", "B d_model", flops=16_384, kind="return")
        run.leave()
        run.value(name, "B d_model", since=since, storage=x)
    run.leave()
    return run.trace()


def failed():
    run = Writer()
    run.enter("", "Broken")
    run.value("x", "B d_model", "argument")
    run.enter("head", "Head")
    run.made("hidden", "B d_ff", flops=65_536)
    run.leave(failed=True)
    run.leave(failed=True)
    problem = Failure("RuntimeError", "mat1 and mat2 cannot be multiplied", 1, "model.py", 31, 9)
    return run.trace(failure=problem)


def noted():
    run = Writer()
    run.enter("", "Noted")
    run.made("x", "B 3", op="aten.linalg_svd.default")
    run.leave()
    return run.trace(notes=("`[odd]` has no source; left as it is | not traced",))


TRACES = {
    "empty": lambda: Trace(target="Nothing"),
    "nested": nested,
    "reused": reused,
    "failed": failed,
    "noted": noted,
}


def make_report(name, level="tensors", language="en", *, folded=True, **changes):
    return replace(build_report(TRACES[name](), level, language, folded=folded), **changes)


@pytest.fixture
def report_of():
    return make_report


@pytest.fixture
def writer():
    return Writer()
