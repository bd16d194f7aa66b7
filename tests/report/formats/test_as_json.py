"""The JSON and CSV for programs: keys, types, and that nothing is lost."""

import csv
import io
import json

import pytest

from shapetrace.report import Canvas
from shapetrace.report.formats.as_csv import render as render_csv
from shapetrace.report.formats.as_json import render as render_json

TOP = {
    "format_version": int,
    "target": str,
    "level": str,
    "config": dict,
    "sizes": dict,
    "tokens": list,
    "totals": dict,
    "training": (dict, type(None)),
    "rows": list,
    "mismatches": list,
    "failure": (dict, type(None)),
    "notes": list,
    "environment": dict,
}
TOTALS = {
    "parameters": int,
    "trainable_parameters": int,
    "parameter_bytes": int,
    "buffer_bytes": int,
    "parameters_by_part": dict,
    "parameter_bytes_by_part": dict,
    "flops": int,
    "flops_forward": int,
    "flops_backward": int,
    "flops_by_part": dict,
    "peak_activation_bytes": int,
    "wall_time_s": float,
    "unmodelled": dict,
    "convention": str,
}
ROW = {
    "path": str,
    "name": str,
    "kind": str,
    "dims": str,
    "evidence": list,
    "shape": (list, type(None)),
    "dtype": str,
    "bytes": int,
    "flops": int,
    "flops_complete": bool,
    "meaning": str,
    "file": str,
    "line": int,
    "repeats": int,
}


def parsed(report):
    return json.loads(render_json(report, Canvas()))


def fits(value, schema):
    return value.keys() == schema.keys() and all(
        isinstance(value[key], kind) for key, kind in schema.items()
    )


@pytest.mark.parametrize("level", ["tensors", "modules", "ops"])
@pytest.mark.parametrize("name", ["empty", "nested", "reused", "failed", "noted"])
def test_schema(report_of, name, level):
    document = parsed(report_of(name, level=level, folded=False))
    assert fits(document, TOP)
    assert document["format_version"] == 1
    assert fits(document["totals"], TOTALS)
    assert all(fits(row, ROW) for row in document["rows"])


def test_every_record_is_there_the_repeated_ones_too(report_of):
    report = report_of("nested", folded=False)
    rows = parsed(report)["rows"]
    own = [r for r in report.trace.tensors if not report.trace.sites[r.site].internal]
    assert [row["shape"] for row in rows] == [list(record.shape) for record in own]
    assert sum(row["name"] == "scores" for row in rows) == 3


def test_numbers_are_whole(report_of):
    totals = parsed(report_of("nested", folded=False))["totals"]
    attention = 3 * (3 * 262_144 + 2 * 65_536)
    feed_forward = 3 * 2 * 1_048_576
    assert totals["parameters"] == 512 * 64 + 3 * (64 * 64 + 256 * 64)
    assert totals["parameter_bytes"] == 4 * totals["parameters"]
    assert totals["flops"] == attention + feed_forward + 2_097_152
    assert totals["flops_by_part"]["attention"] == attention
    assert totals["flops_by_part"]["feed-forward"] == feed_forward
    assert totals["unmodelled"] == {}


def test_what_was_not_counted_is_named(report_of):
    assert parsed(report_of("noted"))["totals"]["unmodelled"] == {"aten.linalg_svd.default": 1}


def test_tokens_and_failure(report_of):
    assert parsed(report_of("nested"))["tokens"][0][1] == [" upon", 407]
    assert parsed(report_of("failed"))["failure"] == {
        "type": "RuntimeError",
        "message": "mat1 and mat2 cannot be multiplied",
        "file": "model.py",
        "line": 31,
    }


def test_csv_says_what_json_says(report_of):
    report = report_of("nested", folded=False)
    lines = list(csv.DictReader(io.StringIO(render_csv(report, Canvas()))))
    rows = parsed(report)["rows"]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line["shape"].split() == list(map(str, row["shape"]))
        for key in ("path", "name", "dims", "meaning", "file"):
            assert line[key] == row[key]
        for key in ("bytes", "flops", "line", "repeats"):
            assert int(line[key]) == row[key]
