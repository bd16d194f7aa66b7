"""What is shown once: equal layers, and values that only change hands."""

import pytest

from shapetrace.report.document import build_report, counted_rows, table_lines


def labels(report):
    return [(line.depth, line.label) for line in table_lines(report)]


@pytest.fixture
def lines_of():
    def lines(writer):
        return labels(build_report(writer.trace(), "tensors", "en", folded=True))

    return lines


def layer(run, index, name="y", dims="B n d_model", path="blocks"):
    since = run.clock
    run.enter(f"{path}.{index}", "Layer")
    out = run.made(name, dims, flops=10)
    run.leave()
    run.value("x", dims, since=since, storage=out)


def test_equal_layers_are_one(report_of):
    shown = labels(report_of("nested"))
    assert (1, "blocks.0 ... x3") in shown
    assert (1, "x ... x3") in shown
    assert not any("blocks.1" in label for _, label in shown)


def test_all_layers_are_shown_when_asked_for(report_of):
    shown = labels(report_of("nested", folded=False))
    assert [label for _, label in shown if label.startswith("blocks")] == [
        "blocks.0",
        "blocks.1",
        "blocks.2",
    ]


def test_layers_that_differ_stay_apart(writer, lines_of):
    writer.enter("", "Model")
    layer(writer, 0)
    layer(writer, 1, dims="B n d_ff")
    layer(writer, 2)
    writer.leave()
    shown = [label for depth, label in lines_of(writer) if depth == 1]
    assert shown == ["blocks.0", "x", "blocks.1", "x", "blocks.2", "x"]


def test_layers_that_alternate_fold_in_pairs(writer, lines_of):
    writer.enter("", "Model")
    for pair in range(3):
        layer(writer, 2 * pair, name="local")
        layer(writer, 2 * pair + 1, name="far")
    writer.leave()
    shown = [label for depth, label in lines_of(writer) if depth == 1]
    assert shown == ["blocks.0 ... x3", "x ... x3", "blocks.1 ... x3", "x ... x3"]


def test_stages_fold_inside_stages(writer, lines_of):
    writer.enter("", "Model")
    for stage in range(2):
        writer.enter(f"stages.{stage}", "Stage")
        for index in range(4):
            layer(writer, index, path=f"stages.{stage}.blocks")
        writer.leave()
    writer.leave()
    shown = lines_of(writer)
    assert shown[1] == (1, "stages.0 ... x2")
    assert shown[2] == (2, "blocks.0 ... x4")


def test_equal_rows_without_a_call_do_not_fold(writer, lines_of):
    writer.enter("", "Model")
    for _ in range(3):
        writer.made("y", "B n")
    writer.leave()
    assert [label for _, label in lines_of(writer)] == ["Decoder", "y", "y", "y"]


def test_folded_rows_count_as_many_as_they_stand_for(report_of):
    folded = counted_rows(report_of("nested", folded=True))
    unfolded = counted_rows(report_of("nested", folded=False))
    assert len(folded) < len(unfolded)
    assert sum(times for _, times in folded) == len(unfolded)
    assert sum(row.flops * times for row, times in folded) == sum(row.flops for row, _ in unfolded)
    assert {times for row, times in folded if row.name == "scores"} == {3}


def test_a_value_that_changes_hands_is_shown_once(report_of):
    names = [line.label for line in table_lines(report_of("nested"))]
    assert "return" not in names
    assert names.count("logits") == 1
    assert [line.label for line in table_lines(report_of("nested")) if line.depth == 3] == [
        "q",
        "k",
        "v",
        "scores",
        "weights",
        "head_output",
        "concat",
        "ffn_hidden",
    ]


def test_an_argument_under_another_name_is_shown(report_of):
    names = [line.label for line in table_lines(report_of("reused"))]
    assert names == ["Decoder", "x", "linear", "input", "once", "linear", "input", "again"]


def test_a_return_that_nobody_names_is_shown(writer, lines_of):
    writer.enter("", "Model")
    writer.made("return", "B n", kind="return")
    writer.leave()
    assert lines_of(writer) == [(0, "Decoder"), (1, "return")]


def test_unknown_storages_are_never_taken_for_equal(writer, lines_of):
    from dataclasses import replace  # noqa: PLC0415

    writer.enter("", "Model")
    writer.value("y", "B n")
    writer.value("return", "B n", "return")
    writer.leave()
    writer.tensors = [replace(record, storage=None) for record in writer.tensors]
    assert lines_of(writer) == [(0, "Decoder"), (1, "y"), (1, "return")]


def test_calls_without_values_are_left_out_but_failed_ones_stay(writer, lines_of):
    writer.enter("", "Model")
    writer.value("x", "B n", "argument")
    writer.enter("quiet", "Quiet")
    writer.leave()
    writer.enter("loud", "Loud")
    writer.leave(failed=True)
    writer.leave(failed=True)
    assert [label for _, label in lines_of(writer)] == ["Decoder", "x", "loud"]
