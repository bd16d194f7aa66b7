"""Annotations that are wrong on purpose: found, weakened, dropped, and said so."""

import sys

import pytest
import torch

from shapetrace.annotation.plan.amend import Amendments, Fault, weakened
from shapetrace.annotation.plan.annotation import NONE, Array, Plain, Repeated, TupleOf, Union
from shapetrace.annotation.plan.plans import FilePlan, FunctionPlan, LocalPlan
from shapetrace.annotation.rewriting.rewrite import rewrite
from shapetrace.capture.proof.messages import ProofCase
from shapetrace.capture.proof.proof import Proof
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.target import resolve

SOURCE = b"""import torch
from torch import nn


def scale(x, by=None):
    y = x * 2
    q, k = y, y
    return [x, x]


class Wrong(nn.Module):
    @property
    def zero(self):
        return torch.zeros(())

    def forward(self, x):
        return scale(x)[0], scale(x, by=x)
"""


def a(*axes, dtype="Float"):
    return Array(dtype, axes)


def plans(file):
    scale = FunctionPlan(
        5,
        "scale",
        (("x", a("n", "n")), ("by", Union((a("n", "m"), NONE)))),
        Repeated("list", a("n", "m")),
        (
            LocalPlan(6, "y", a("n", "3")),
            LocalPlan(7, "q", a("m", "n")),
            LocalPlan(7, "k", a("n", "m")),
        ),
    )
    zero = FunctionPlan(13, "Wrong.zero", (), a("n"))
    forward = FunctionPlan(
        16, "Wrong.forward", (("x", a("n", "m", dtype="Int")),), TupleOf((a("n", "m"), a()))
    )
    return FilePlan(file, (scale, zero, forward))


@pytest.mark.slow
def test_each_wrong_annotation_is_found_and_no_other(tmp_path, monkeypatch):
    file = tmp_path / "wrong_on_purpose.py"
    file.write_bytes(SOURCE)
    target = (f"{file}:Wrong", (), ())
    try:
        model = resolve(*target).build()
        new = rewrite(SOURCE, plans(str(file)))
        names, variables = {}, {}
        numbers = {5: 0, 13: 1, 16: 2}
        for one in new.written:
            names.setdefault((str(file), numbers[one.line]), set()).add(one.name)
            if one.kind == "local":
                variables.setdefault((str(file), numbers[one.line]), set()).add(one.name)
        calls = [CallInputs((torch.ones(rows, 3),)) for rows in (2, 4)]
        proof = Proof(model, [ProofCase(calls, target)])
        verdict = proof.of({str(file): new.new}, names, variables)
    finally:
        sys.modules.pop("wrong_on_purpose", None)
    assert verdict.error == ""
    assert {(one.function, one.name): one.reason for one in verdict.failed} == {
        (0, "x"): "got float32[2, 3]",
        (0, "q"): "got float32[2, 3]",
        (1, "return"): "was not reached again",
        (2, "x"): "got float32[2, 3]",
        (2, "return"): "got tuple of float32[2, 3], float32[2, 3], float32[2, 3]",
    }
    ((place, shape, _bits),) = verdict.outputs[1][:1]
    assert (place, shape) == ("[0]", "float32[4, 3]")


def test_weakened_first_then_dropped():
    plan = FilePlan("f", (FunctionPlan(1, "f", (("x", a("n", "m")), ("y", a("n"))), a("n")),))
    amendments = Amendments()
    faults = [Fault("f", 1, "x", "got float32[2, 3]")]
    (once,) = amendments.amend([plan], faults)
    assert once.functions[0].parameters == (("x", a("_", "_")), ("y", a("n")))
    (twice,) = amendments.amend([once], faults)
    assert twice.functions[0].parameters == (("y", a("n")),)
    assert [(one.name, one.reason) for one in amendments.told.values()] == [
        ("x", "dropped: got float32[2, 3]")
    ]
    assert amendments.amend([twice], [Fault("f", 1, "y", ""), Fault("f", 1, "return", "")]) != ()


def test_a_plan_with_nothing_left_is_none():
    plan = FilePlan("f", (FunctionPlan(1, "f", (), Plain("Output")),))
    assert Amendments().amend([plan], [Fault("f", 1, "return", "")]) == ()


def test_weakened_keeps_dtypes_ranks_and_containers():
    before = TupleOf((Repeated("list", a("*batch", "n")), Union((a("n", "2", dtype="Int"), NONE))))
    assert weakened(before) == TupleOf(
        (Repeated("list", a("...")), Union((a("_", "_", dtype="Int"), NONE)))
    )
