"""Every format over every hand-built trace, against files that show the layout.

Run with SHAPETRACE_WRITE_GOLD=1 to write the files anew, and read the difference.
"""

import os
from pathlib import Path

import pytest

from shapetrace.check import Mismatch
from shapetrace.report import REPORTERS, Canvas

GOLD = Path(__file__).parent / "gold"
TRACES = ("empty", "nested", "reused", "failed", "noted")


def compare(name, text):
    path = GOLD / name
    if os.environ.get("SHAPETRACE_WRITE_GOLD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("reporter", REPORTERS, ids=lambda reporter: reporter.name)
@pytest.mark.parametrize("name", TRACES)
def test_layout(report_of, name, reporter):
    report = report_of(name, folded=reporter.folds)
    compare(f"{name}.{reporter.name}{reporter.suffixes[0]}", reporter.render(report, Canvas()))


@pytest.mark.parametrize("reporter", REPORTERS, ids=lambda reporter: reporter.name)
def test_layout_in_chinese(report_of, reporter):
    report = report_of("nested", language="zh", folded=True)
    compare(f"nested.zh.{reporter.name}{reporter.suffixes[0]}", reporter.render(report, Canvas()))


@pytest.mark.parametrize("level", ["modules", "ops"])
def test_layout_of_a_level(report_of, level):
    text = REPORTERS[0].render(report_of("nested", level=level), Canvas())
    compare(f"nested.{level}.txt", text)


def test_layout_with_mismatches(report_of):
    found = Mismatch(
        "size",
        0,
        "blocks.0.mlp",
        "argument `w`",
        ("axis `d_model` is 7 in blocks.0.mlp (argument `w`), but 4 since blocks.0.norm",),
        "f32[7, 5]",
        "d_model d_ff",
        "model/feedforward.py",
        31,
        "pass `w` with first axis 4, or correct the annotation",
    )
    report = report_of("noted", mismatches=(found,))
    for reporter in REPORTERS:
        text = reporter.render(report, Canvas(width=80))
        compare(f"mismatch.{reporter.name}{reporter.suffixes[0]}", text)
