"""Findings on hand-built traces, to the letter."""

from dataclasses import replace

import pytest

from shapetrace.check import check
from shapetrace.dims import Declaration, DeclaredShape, Dim
from shapetrace.records.trace import Scope, Site, TensorRecord, Trace


class Run:
    """Builds a trace a value at a time."""

    def __init__(self, config=(), sizes=()):
        self.config, self.sizes = config, sizes
        self.sites, self.scopes, self.tensors = (
            [],
            [Scope(None, "", "module", "Decoder", "m.py", 1, 0, 99)],
            [],
        )

    def call(self, path, type_name="Block"):
        self.scopes.append(Scope(0, path, "module", type_name, "model.py", 1, 1, 98))
        return len(self.scopes) - 1

    def value(
        self,
        scope,
        kind,
        name,
        declared,
        shape,
        line=1,
        dtype="float32",
        holds=True,
        problem="",
        element="",
        layout="",
    ):
        site = Site("/home/me/model/feedforward.py", line, "f", name, kind)
        if site not in self.sites:
            self.sites.append(site)
        shapes = (
            tuple(
                DeclaredShape(*alternative.split(" ", 1)) for alternative in declared.split(" | ")
            )
            if declared
            else ()
        )
        self.tensors.append(
            TensorRecord(
                self.sites.index(site),
                scope,
                0,
                len(self.tensors) + 1,
                shape,
                dtype,
                "cpu",
                0,
                None,
                element=element,
                layout=layout,
                declared=Declaration(declared, shapes, problem),
                holds=holds,
            )
        )
        return len(self.tensors) - 1

    @property
    def trace(self):
        return Trace(
            "Decoder",
            config=self.config,
            sizes=self.sizes,
            sites=tuple(self.sites),
            scopes=tuple(self.scopes),
            tensors=tuple(self.tensors),
        )


def texts(run, **options):
    return [mismatch.text for mismatch in check(run.trace, **options)]


@pytest.fixture
def run():
    return Run()


def test_size(run):
    mlp = run.call("blocks.0.mlp")
    run.value(mlp, "argument", "x", "Float n d_model", (3, 4), line=30)
    run.value(mlp, "argument", "w", "Float d_model d_ff", (7, 5), line=31, holds=False)
    assert texts(run) == [
        (
            "axis `d_model` is 7 in blocks.0.mlp (argument `w`), but 4 since blocks.0.mlp (argument `x`, model/feedforward.py:30)\n"
            '  observed f32[7, 5]   annotated "d_model d_ff"   model/feedforward.py:31\n'
            "  fix: pass `w` with first axis 4, or correct the annotation"
        )
    ]


def test_several_sizes_of_one_value_and_the_return(run):
    mlp = run.call("mlp")
    run.value(mlp, "argument", "x", "Float B n d", (2, 3, 4), line=3)
    run.value(mlp, "return", "return", "Float B n d", (2, 5, 6), line=9, holds=False)
    assert texts(run) == [
        (
            "axis `n` is 5 in mlp (return value), but 3 since mlp (argument `x`, model/feedforward.py:3)\n"
            "axis `d` is 6 in mlp (return value), but 4 since mlp (argument `x`, model/feedforward.py:3)\n"
            '  observed f32[2, 5, 6]   annotated "B n d"   model/feedforward.py:9\n'
            "  fix: return a tensor with second axis 3 and third axis 4, or correct the annotation"
        )
    ]


def test_a_value_that_fails_binds_nothing(run):
    f = run.call("f")
    run.value(f, "argument", "x", "Float n n k", (3, 4, 9), line=3, holds=False)
    run.value(f, "local", "y", "Float k", (8,), line=4)
    run.value(f, "local", "z", "Float k", (9,), line=5, holds=False)
    assert [text.splitlines()[0] for text in texts(run)] == [
        "axis `n` is 4 in f (argument `x`), but 3 earlier in the same shape",
        "axis `k` is 9 in f (local `z`), but 8 since f (local `y`, model/feedforward.py:4)",
    ]


def test_calls_do_not_bind_for_each_other(run):
    run.value(run.call("f"), "argument", "x", "Float n", (3,))
    run.value(run.call("f"), "argument", "x", "Float n", (4,))
    assert texts(run) == []


def test_rank(run):
    f = run.call("f")
    run.value(f, "argument", "x", "Float B n", (3,), line=2, holds=False)
    run.value(f, "local", "y", "Float *b n d", (3,), line=4, holds=False)
    run.value(f, "attribute", "self.y", "Float ... n d", (3,), line=5, holds=False)
    assert texts(run)[0] == (
        "1 axis in f (argument `x`), but 2 declared\n"
        '  observed f32[3]   annotated "B n"   model/feedforward.py:2\n'
        "  fix: pass `x` with 2 axes, or correct the annotation"
    )
    assert texts(run)[1] == (
        "1 axis in f (local `y`), but at least 2 declared\n"
        '  observed f32[3]   annotated "*b n d"   model/feedforward.py:4\n'
        "  fix: make `y` with at least 2 axes, or correct the annotation"
    )
    assert texts(run)[2].startswith("1 axis in f (attribute `self.y`), but at least 2 declared\n")


def test_dtype(run):
    run.value(0, "argument", "mask", "Bool B n", (2, 5), line=31, holds=False)
    assert texts(run) == [
        (
            "dtype is float32 in Decoder (argument `mask`), but Bool is declared\n"
            '  observed f32[2, 5]   annotated "B n"   model/feedforward.py:31\n'
            "  fix: pass `mask` with dtype Bool, or correct the annotation"
        )
    ]


def test_literal_expression_unbound(run):
    f = run.call("f")
    run.value(f, "argument", "x", "Float h d_k", (8, 4), line=2)
    run.value(f, "local", "y", "Float rows=3 _", (5, 1), line=3, holds=False)
    run.value(f, "local", "z", "Float h*d_k", (30,), line=4, holds=False)
    run.value(f, "local", "u", "Float h*q", (32,), line=5, holds=False)
    assert texts(run) == [
        (
            "axis `rows=3` is 5 in f (local `y`), but the annotation says 3\n"
            '  observed f32[5, 1]   annotated "rows=3 _"   model/feedforward.py:3\n'
            "  fix: make `y` with first axis 3, or correct the annotation"
        ),
        (
            "axis `h*d_k` is 30 in f (local `z`), but 32 by h = 8 since f (argument `x`, model/feedforward.py:2)"
            " and d_k = 4 since f (argument `x`, model/feedforward.py:2)\n"
            '  observed f32[30]   annotated "h*d_k"   model/feedforward.py:4\n'
            "  fix: make `z` with first axis 32, or correct the annotation"
        ),
        (
            "axis `h*q` is 32 in f (local `u`), but `h*q` uses `q`, which no axis before it binds\n"
            '  observed f32[32]   annotated "h*q"   model/feedforward.py:5\n'
            "  fix: use only names that earlier values of the call bind, or give the axis a name of its own"
        ),
    ]


def test_broadcasting_and_variadics(run):
    f = run.call("f")
    run.value(f, "argument", "x", "Float *batch d", (2, 3, 4), line=2)
    run.value(f, "argument", "a", "Float #d", (1,), line=3)
    run.value(f, "argument", "b", "Float #d", (3,), line=4, holds=False)
    run.value(f, "argument", "c", "Float *batch", (2, 5), line=5, holds=False)
    assert texts(run) == [
        (
            "axis `#d` is 3 in f (argument `b`), but 4 since f (argument `x`, model/feedforward.py:2)\n"
            '  observed f32[3]   annotated "#d"   model/feedforward.py:4\n'
            "  fix: pass `b` with first axis 4 or 1, or correct the annotation"
        ),
        (
            "axes `*batch` are (2, 5) in f (argument `c`), but (2, 3) since f (argument `x`, model/feedforward.py:2)\n"
            '  observed f32[2, 5]   annotated "*batch"   model/feedforward.py:5\n'
            "  fix: pass `c` with (2, 3) for `*batch`, or correct the annotation"
        ),
    ]


def test_union(run):
    f = run.call("f")
    run.value(f, "argument", "x", "Float B n", (2, 5), line=2)
    run.value(f, "argument", "mask", "Bool B n | Float B 1 n n", (2, 1, 5, 6), line=3, holds=False)
    assert texts(run) == [
        (
            "none of the 2 alternatives fits in f (argument `mask`)\n"
            '  Bool "B n": dtype is float32, but Bool is declared; 4 axes, but 2 declared\n'
            '  Float "B 1 n n": axis `n` is 6, but 5 since f (argument `x`, model/feedforward.py:2)\n'
            '  observed f32[2, 1, 5, 6]   annotated "Bool B n | Float B 1 n n"   model/feedforward.py:3\n'
            "  fix: pass `mask` in one of these shapes, or correct the annotation"
        )
    ]


def test_a_union_that_holds_binds_by_the_alternative_that_fits(run):
    f = run.call("f")
    run.value(f, "argument", "x", "Bool n | Float B n", (2, 5), line=2)
    run.value(f, "local", "y", "Float n", (2,), line=3, holds=False)
    assert texts(run)[0].startswith("axis `n` is 2 in f (local `y`), but 5 since f (argument `x`")


def test_what_the_trace_does_not_tell(run):
    run.value(run.call("f"), "argument", "x", "Float {self.width}", (5,), line=2, holds=False)
    assert texts(run) == [
        (
            "jaxtyping refuses the value in f (argument `x`), for a reason that the trace does not tell\n"
            '  observed f32[5]   annotated "Float {self.width}"   model/feedforward.py:2\n'
            "  fix: look at the annotation's own class or expression"
        )
    ]


def test_an_annotation_that_cannot_be_evaluated(run):
    run.value(
        run.call("f"),
        "argument",
        "x",
        "",
        (5,),
        line=2,
        holds=None,
        problem="NameError: name 'Flaot' is not defined",
        element="[0]",
    )
    run.tensors[0] = replace(
        run.tensors[0], declared=replace(run.tensors[0].declared, text='Flaot[Tensor, "n"]')
    )
    assert texts(run) == [
        (
            "the annotation cannot be evaluated in f (argument `x[0]`): NameError: name 'Flaot' is not defined\n"
            '  observed f32[5]   annotated "Flaot[Tensor, "n"]"   model/feedforward.py:2\n'
            "  fix: import or correct its names; until then nothing checks it"
        )
    ]


def test_ragged_tensors_are_no_finding(run):
    run.value(
        run.call("f"),
        "argument",
        "x",
        "Float n",
        (5,),
        holds=None,
        problem="a ragged tensor's sizes are not numbers",
        layout="jagged",
    )
    assert texts(run) == []


def test_equal_findings_of_equal_layers_are_one(run):
    for layer in range(3):
        mlp = run.call(f"blocks.{layer}.mlp")
        run.value(mlp, "argument", "x", "Float n d", (3, 4), line=30)
        run.value(mlp, "argument", "w", "Float d", (7,), line=31, holds=False)
    (text,) = texts(run)
    assert text.startswith("axis `d` is 7 in blocks.0.mlp")
    assert text.endswith("\n  the same in 3 calls")


def test_a_pinned_name_against_the_configuration():
    run = Run(config=(("d_model", 64), ("n", 9), ("causal", True)), sizes=(("B", 2), ("n", 5)))
    run.value(run.call("a"), "argument", "x", "Float n d_model", (5, 64), line=2)
    run.value(run.call("b"), "argument", "x", "Float n d_model", (1, 128), line=3)
    assert texts(run) == [
        (
            "`d_model` is 128 in b (argument `x`), but 64 in the configuration\n"
            '  observed f32[1, 128]   annotated "n d_model"   model/feedforward.py:3\n'
            "  fix: one name means one size in a whole run: correct the size, or give this axis a name of its own"
        )
    ]


def test_a_name_pinned_by_the_caller(run):
    run.value(run.call("a"), "argument", "x", "Float d", (64,), line=2)
    run.value(run.call("b"), "argument", "x", "Float d", (128,), line=3)
    assert texts(run) == []
    assert texts(run, pinned=["d"])[0].startswith(
        "`d` is 128 in b (argument `x`), but 64 since a (argument `x`, model/feedforward.py:2)\n"
    )


CONFIG = (("d_model", 32), ("h", 8), ("d_k", 4))


def probe(*names):
    return tuple(Dim(name, "probe") for name in names)


def test_a_name_that_holds_only_by_todays_numbers():
    run = Run(config=CONFIG, sizes=(("B", 2), ("n", 5)))
    x = run.value(run.call("attention"), "local", "concat", "Float B n d_model", (2, 5, 32), line=7)
    assert texts(run, probed={x: probe("B", "n", "h*d_k")}) == [
        (
            "axis `d_model` in attention (local `concat`) is really `h*d_k`: equal only by today's numbers\n"
            '  observed f32[2, 5, 32]   annotated "B n d_model"   model/feedforward.py:7\n'
            "  fix: write `h*d_k`, or give the axis a name of its own"
        )
    ]
    assert texts(run, probed={x: probe("B", "n", "d_model")}) == []
    assert texts(run, probed={x: (*probe("B", "n"), Dim("32", "literal"))}) == []


def test_expressions_that_are_equal_agree():
    run = Run(config=CONFIG, sizes=(("n", 5),))
    x = run.value(run.call("f"), "local", "y", "Float d_k*h (n+1)//2", (32, 3))
    assert texts(run, probed={x: probe("h*d_k", "(n-1)//2+1")}) == []


def test_a_number_that_moves():
    run = Run(config=CONFIG, sizes=(("n", 5),))
    x = run.value(run.call("f"), "local", "y", "Float 5", (5,), line=7)
    assert texts(run, probed={x: probe("n")})[0].startswith(
        "axis `5` in f (local `y`) is no fixed number: it is `n`\n"
    )


def test_a_name_of_its_own_means_one_thing_in_a_call():
    run = Run(config=CONFIG, sizes=(("n", 5),))
    f = run.call("f")
    x = run.value(f, "argument", "x", "Float dim", (32,), line=2)
    y = run.value(f, "argument", "y", "Float dim", (32,), line=3)
    probed = {x: probe("d_model"), y: probe("h*d_k")}
    assert texts(run, probed=probed)[0].splitlines()[0] == (
        "`dim` is `h*d_k` in f (argument `y`), but `d_model` since f (argument `x`, model/feedforward.py:2): equal only by today's numbers"
    )
    assert texts(run, probed={x: probe("h*d_k"), y: probe("d_k*h")}) == []


def test_a_trace_without_annotations_has_no_findings():
    assert check(Trace("nothing")) == []
    assert str(check(Trace("nothing"))) == "[]"


FEED = """
import torch


def make(n=5):
    return torch.ones(2, n, 6)
"""


def test_inputs_of_a_function_are_made_at_other_sizes(checked, tmp_path):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B 5 d"]) -> Float[Tensor, "B n d"]:
        return x
"""
    (tmp_path / "feed.py").write_text(FEED, encoding="utf-8")
    result = checked(source, inputs_file=f"{tmp_path / 'feed.py'}:make")
    assert [(one.code, one.sizes) for one in result.findings if one.kind == "literal"] == [
        ("ST101", (("n", 6),))
    ]
    assert result.notes == ()
