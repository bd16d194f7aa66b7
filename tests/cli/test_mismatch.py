"""An annotation that does not hold: shown below the table, and exit 1."""

import json
from dataclasses import replace

import pytest

import shapetrace


@pytest.fixture
def broken(saved, tmp_path):
    """The saved trace with one declaration that its `ffn_hidden` does not fit."""
    trace = shapetrace.load(saved)
    place = next(
        index
        for index, record in enumerate(trace.tensors)
        if trace.sites[record.site].name == "ffn_hidden"
    )
    record = trace.tensors[place]
    shape = replace(record.declared.shapes[0], dims="B n d_model")
    wrong = replace(record, declared=replace(record.declared, shapes=(shape,)), holds=False)
    path = tmp_path / "broken.trace"
    tensors = (*trace.tensors[:place], wrong, *trace.tensors[place + 1 :])
    shapetrace.save(replace(trace, tensors=tensors), path)
    return path


def test_the_table_comes_first_then_the_finding(command, broken):
    code, out, err = command("report", broken)
    assert (code, err) == (1, "")
    assert out.index("logits") < out.index("mismatch: axis `d_model` is 64")
    assert "fix: " in out


def test_json_has_it_in_parts(command, broken):
    code, out, _ = command("report", broken, "--format", "json")
    assert code == 1
    (found,) = json.loads(out)["mismatches"]
    assert (found["name"], found["annotated"]) == ("ffn_hidden", "B n d_model")
    assert found["line"] > 0


def test_a_sound_run_has_none(command, saved):
    code, out, _ = command("report", saved, "--format", "json")
    assert code == 0
    assert json.loads(out)["mismatches"] == []


def test_no_check_takes_no_verdict():
    trace = shapetrace.forward("tiny-decoder", texts=["abc"], check=False)
    assert {record.holds for record in trace.tensors} == {None}
    assert any(record.declared for record in trace.tensors)
