"""Names: by evidence, never by equal numbers; every fallback, and an independent oracle."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

import shapetrace
from shapetrace.api.preparing.request import Request
from shapetrace.api.tracing.trace_target import trace_target
from shapetrace.capture.probing.choose_sizes import labels
from shapetrace.capture.target.remake import remake
from shapetrace.dims import evaluate
from tests.covered import named_models as m
from tests.covered.study import dims_of

FILE = Path(__file__).with_name("named_models.py")


def traced(name, inputs, *arguments, **options):
    outcome = trace_target(Request(f"{FILE}:{name}", inputs, arguments=arguments, **options))
    assert outcome.error is None
    return outcome.trace


def only(trace, function, name):
    (found,) = dims_of(trace, function, name)
    return found


@pytest.mark.parametrize(
    ("B", "n", "h", "d_k", "d_model"),
    [(2, 5, 3, 8, 24), (3, 5, 3, 8, 24), (2, 8, 3, 8, 24), (4, 4, 4, 4, 16), (2, 2, 2, 2, 2)],
    ids=["d_model = h*d_k", "B = h", "n = d_k", "B = n = h = d_k", "all equal"],
)
def test_equal_sizes_keep_their_names(B, n, h, d_k, d_model):
    sizes = (f"h={h}", f"d_k={d_k}", f"d_model={d_model}")
    trace = traced("Heads", (f"x:float32[B={B},n={n},{d_model}]",), *sizes)
    assert only(trace, "Heads.forward", "x") == "B n d_model"
    assert only(trace, "Heads.forward", "qkv") == "B n 3*h*d_k"
    assert only(trace, "Heads.forward", "q") == "B h n d_k"
    assert only(trace, "Heads.forward", "scores") == "B h n n"
    assert only(trace, "Heads.forward", "concat") == "B n h*d_k"
    assert only(trace, "Heads.forward", "return") == "B n d_model"
    weights = {p.path: " ".join(d.name for d in p.dims) for p in trace.parameters}
    assert weights == {"qkv.weight": "3*h*d_k d_model", "out.weight": "d_model h*d_k"}


def test_t5_buckets_are_not_key_widths():
    pytest.importorskip("transformers")
    settings = ("d_model=24", "d_kv=32", "d_ff=40", "num_layers=1", "num_heads=3", "vocab_size=50")
    request = Request(
        "transformers:T5Model",
        ("input_ids:int64[B=2,m=7]<50", "decoder_input_ids:int64[B,n=5]<50"),
        hf_config=(*settings, "relative_attention_num_buckets=32"),
    )
    trace = trace_target(request).trace
    named = {p.path: " ".join(d.name for d in p.dims) for p in trace.parameters}
    attention = "encoder.block.0.layer.0.SelfAttention"
    bias = named[f"{attention}.relative_attention_bias.weight"]
    assert bias == "relative_attention_num_buckets num_heads"
    assert named[f"{attention}.q.weight"] == "inner_dim d_model"
    (q,) = [p for p in trace.parameters if p.path == f"{attention}.q.weight"]
    assert q.dims[0].detail.startswith(("d_kv*num_heads, ", "num_heads*d_kv, "))


def test_another_factor_where_doubling_does_not_divide():
    trace = traced("Split", ("x:float32[B=2,4]",))
    assert only(trace, "Split.forward", "parts") == "B h width//h"


def test_real_runs_where_weightless_ones_look_at_values():
    trace = traced("ByValue", ("x:float32[B=2,n=5,4]", "lengths:int64[B]<5"))
    assert "B n width" in dims_of(trace, "ByValue.forward", "x")
    assert any("real runs" in note for note in trace.notes)


def test_an_instance_that_looks_at_values_keeps_its_own():
    model = m.ByValue().eval()
    x, lengths = torch.ones(2, 5, 4), torch.tensor([3, 2])
    trace = shapetrace.trace(model, x, lengths, dims={"B": 2, "n": 5})
    assert "B n width" in dims_of(trace, "ByValue.forward", "x")
    (kept,) = dims_of(trace, "ByValue.forward", "kept")
    assert kept == "B min(n,3) width"


def test_roundings_are_told_apart():
    trace = traced("Convolved", ("x:float32[B=2,3,H=32,W=16]",))
    assert only(trace, "Convolved.forward", "strided") == "B channels (H-1)//2+1 (W-1)//2+1"
    assert only(trace, "Convolved.forward", "pooled") == "B 3 H//2 W//2"
    assert only(trace, "Convolved.forward", "plain") == "B 3 H W+1"


def test_sizes_that_only_run_together_are_moved_together():
    trace = traced("Patches", ("x:float32[B=2,3,H=32,W=32]",))
    assert only(trace, "Patches.forward", "x") == "B channels H W"
    assert only(trace, "Patches.forward", "patches") == "B (H//patch)*(W//patch) width"
    assert only(trace, "Patches.forward", "return") == "B (H//patch)*(W//patch)+1 width"


def test_an_instance_names_its_fixed_sizes_by_what_it_holds():
    trace = shapetrace.trace(m.Fixed(), torch.ones(2, 4), dims={"B": 2})
    (record,) = [r for r in trace.tensors if trace.sites[r.site].name == "y"]
    assert [d.name for d in record.dims] == ["B", "hidden"]
    assert [d.evidence for d in record.dims] == ["probe", "attribute"]


def test_an_attribute_of_the_size_of_an_input_is_no_evidence():
    trace = shapetrace.trace(m.Fixed(), torch.ones(7, 4), dims={"B": 7})
    (record,) = [r for r in trace.tensors if trace.sites[r.site].name == "y"]
    assert [d.name for d in record.dims] == ["B", "7"]


def test_unnamed_inputs_are_guessed_and_say_so():
    trace = shapetrace.trace(m.Heads().eval(), torch.ones(2, 5, 16))
    (record,) = [r for r in trace.tensors if trace.sites[r.site].name == "concat"]
    assert [(d.name, d.evidence) for d in record.dims[:2]] == [("B", "guess"), ("n", "guess")]


def test_aliases_rename():
    trace = traced("Heads", ("x:float32[B=2,n=5,16]",), aliases=("d_k=width", "h=heads"))
    assert only(trace, "Heads.forward", "q") == "B heads n width"
    assert only(trace, "Heads.forward", "concat") == "B n heads*width"


# The oracle: FakeTensorMode with symbolic sizes.


class Joined(nn.Module):
    def forward(self, x):
        y = torch.cat([x, x[:, :1]], dim=1)
        z = y.flatten(0, 1)
        return y, z, torch.bmm(x, x.transpose(-1, -2)), y.repeat(1, 2, 1)


def symbolic(model, tensor, names):
    """What every tensor in the output comes to, as functions of the named sizes."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    dynamic = [DimDynamic.DYNAMIC if name else DimDynamic.STATIC for name in names]
    context = StatelessSymbolicContext(dynamic_sizes=dynamic)
    fake = mode.from_tensor(tensor, symbolic_context=context)
    symbols = {n: s.node.expr for n, s in zip(names, fake.shape, strict=True) if n}
    with mode, torch.no_grad():
        outputs = model(fake)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return symbols, [
        [getattr(getattr(s, "node", None), "expr", s) for s in o.shape] for o in outputs
    ]


def labelled(integers):
    """A model's own sizes by what expressions call them."""
    names = labels([*integers])
    return {names[name]: size for name, size in integers.items()}


@pytest.mark.parametrize(
    ("make", "shape", "names"),
    [
        (lambda: m.Convolved().eval(), (2, 3, 32, 16), ("B", "", "H", "W")),
        (Joined, (3, 6, 4), ("B", "n", "")),
        (lambda: m.Heads().eval(), (3, 6, 16), ("B", "n", "")),
        (
            lambda: nn.Conv1d(4, 6, 5, stride=3, padding=1, dilation=2).eval(),
            (3, 4, 40),
            ("B", "", "n"),
        ),
        (lambda: nn.AvgPool2d(3, stride=2).eval(), (3, 2, 20, 31), ("B", "", "H", "W")),
    ],
    ids=["convolutions", "cat, flatten, repeat", "attention", "conv1d", "pool"],
)
def test_symbolic_sizes_give_the_same_expressions(make, shape, names):
    model = make()
    x = torch.ones(shape)
    dims = {name: size for name, size in zip(names, shape, strict=True) if name}
    trace = shapetrace.trace(model, x, dims=dims)
    symbols, expected = symbolic(model, x, names)
    found = remake(model)
    own = labelled(found.integers) if found is not None else {}
    root = [s.path == "" and s.kind == "module" for s in trace.scopes].index(True)
    returned = [
        r for r in trace.tensors if r.scope == root and trace.sites[r.site].kind == "return"
    ]
    assert len(returned) == len(expected)
    for record, expressions in zip(returned, expected, strict=True):
        for dim, size, expression in zip(record.dims, record.shape, expressions, strict=True):
            if dim.evidence == "attribute":  # of a size that no input moves
                assert int(expression) == size
                continue
            for extra in range(9):
                sizes = own | {name: given + extra for name, given in dims.items()}
                at = {symbol: sizes[name] for name, symbol in symbols.items()}
                truth = int(expression.subs(at)) if hasattr(expression, "subs") else int(expression)
                assert evaluate(dim.name, sizes) == truth, (dim, expression)
