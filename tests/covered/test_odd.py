"""Parts of torch, and models that are odd in one way each, are traced whole."""

from __future__ import annotations

import pytest
import torch

from shapetrace.capture import record
from shapetrace.cost import summarise
from tests.covered.odd_cases import ODD
from tests.covered.study import check, study


def named(name):
    return next(case for case in ODD if case.name == name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ODD, ids=lambda case: case.name)
def test_an_odd_model_is_traced_whole(case, tell):
    tell(check(case))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["scripted", "generators, small"])
def test_what_cannot_be_seen_inside_is_said(name):
    trace = study(named(name)).trace
    inside = "RecursiveScriptModule" if name == "scripted" else "Generators.pieces"
    assert any(inside in note for note in trace.notes) or any(
        scope.type_name == inside for scope in trace.scopes
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["sparse", "nested"])
def test_a_product_of_unknown_cost_is_listed_not_zero(name):
    unmodelled = summarise(study(named(name)).trace).unmodelled
    assert any("mm" in operator or "linear" in operator for operator, _ in unmodelled)


def test_a_checkpointed_step_counts_what_ran_again():
    model = named("checkpointed").target()
    x = torch.ones(2, 4, requires_grad=True)
    with record(model) as recording:
        model(x).sum().backward()
    summary = summarise(recording.trace)
    product = 2 * 2 * 4 * 4
    assert summary.flops_forward == product
    assert summary.flops_backward == 3 * product
