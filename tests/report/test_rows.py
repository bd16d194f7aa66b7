"""Each number of a report against what the hand-built run says."""

from dataclasses import replace

import pytest

from shapetrace.cost import price
from shapetrace.dims import Declaration, DeclaredShape, Dim
from shapetrace.records.trace import TensorRecord
from shapetrace.report.rows import named_shape

LINEAR = 262_144
SCORES = 65_536
FEED_FORWARD = 1_048_576
ATTENTION = 3 * LINEAR + 2 * SCORES
BLOCK = ATTENTION + 2 * FEED_FORWARD
LOGITS = 2_097_152


def found(report, name, path=None):
    return [row for row in report.rows if row.name == name and path in (None, row.path)]


def test_the_eight_tensors_of_the_spec_are_named_and_shaped(report_of):
    report = report_of("nested")
    spec = {
        "token_ids": "B n",
        "x": "B n d_model",
        "q": "B h n d_k",
        "k": "B h n d_k",
        "v": "B h n d_k",
        "scores": "B h n n",
        "head_output": "B h n d_k",
        "concat": "B n d_model",
        "ffn_hidden": "B n d_ff",
        "logits": "B n vocab_size",
    }
    for name, dims in spec.items():
        assert {row.dims for row in found(report, name)} == {dims}
        assert all(row.meaning for row in found(report, name))


def test_a_statement_costs_what_ran_for_it_calls_inside_included(report_of):
    report = report_of("nested")
    assert [row.flops for row in found(report, "q")] == [LINEAR] * 3
    assert [row.flops for row in found(report, "attended")] == [ATTENTION] * 3
    assert [row.flops for row in found(report, "x", "")] == [0, BLOCK, BLOCK, BLOCK]
    assert [row.flops for row in found(report, "token_ids")] == [0]


def test_a_module_costs_all_that_ran_inside_it(report_of):
    report = report_of("nested", level="modules")
    assert [row.flops for row in report.rows if row.name == "Decoder"] == [3 * BLOCK + LOGITS]
    assert [row.flops for row in report.rows if row.name == "Attention"] == [ATTENTION] * 3
    assert [row.dims for row in report.rows if row.name == "Decoder"] == ["B n vocab_size"]


def test_operators_add_up_to_the_root(report_of):
    operators = report_of("nested", level="ops").rows
    assert sum(row.flops for row in operators) == 3 * BLOCK + LOGITS
    assert {row.kind for row in operators} == {"op"}


def test_torchs_own_code_is_left_out(report_of):
    assert not found(report_of("nested"), "input")


def test_what_has_no_formula_is_a_lower_bound(report_of):
    (row,) = found(report_of("noted"), "x")
    assert (row.flops, row.complete) == (0, False)
    assert all(row.complete for row in report_of("nested").rows)


def test_costs_know_where_an_unpriced_operator_ran(report_of):
    trace = report_of("noted").trace
    prices = price(trace)
    at = trace.ops[0].at
    assert prices.between(at - 1, at) == (0, False)
    assert prices.between(at, at + 5) == (0, True)


RECORD = TensorRecord(0, 0, 0, 1, (2, 3), "float32", "cpu", 24, None)
DECLARED = Declaration('Float[Tensor, "B n"]', (DeclaredShape("Float", "B n"),))


@pytest.mark.parametrize(
    ("changes", "dims"),
    [
        ({}, "2 3"),
        ({"declared": DECLARED}, "B n"),
        ({"declared": DECLARED, "holds": True}, "B n"),
        ({"declared": DECLARED, "holds": False}, "2 3"),
        ({"declared": DECLARED, "dims": (Dim("B", "probe"), Dim("2*n", "probe"))}, "B 2*n"),
        ({"declared": Declaration("int | Tensor")}, "2 3"),
        ({"shape": (), "declared": Declaration("x", (DeclaredShape("Float", ""),))}, ""),
        ({"declared": Declaration("x", (DeclaredShape("Float", " n"),)), "shape": (3,)}, "n"),
    ],
)
def test_a_named_shape_comes_from_dims_then_declaration_then_sizes(changes, dims):
    assert named_shape(replace(RECORD, **changes)) == dims
