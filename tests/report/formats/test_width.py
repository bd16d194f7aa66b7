"""The table on narrow and wide screens, in one-cell and two-cell letters."""

import re

import pytest
from rich.cells import cell_len

from shapetrace.report import REPORTERS, Canvas
from shapetrace.report.formats.as_table import render

WIDTHS = (40, 60, 80, 120, 200)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_screen(report_of, width, language):
    for name in ("nested", "failed", "noted", "reused", "empty"):
        text = render(report_of(name, language=language), Canvas(width))
        assert max(cell_len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_names_and_shapes_are_never_cut(report_of, width):
    text = render(report_of("nested"), Canvas(width))
    for words in ("head_output  B h n d_k", "logits           B n vocab_size", "blocks.0 ... x3"):
        assert words in text
    assert "…" not in text


@pytest.mark.parametrize(
    ("width", "gone"),
    [
        (40, ["meaning", "dtype", "bytes", "FLOPs", "sizes"]),
        (60, ["meaning", "dtype", "bytes"]),
        (80, ["meaning"]),
        (120, []),
        (200, []),
        (None, []),
    ],
)
def test_columns_go_in_a_fixed_order_and_the_table_says_so(report_of, width, gone):
    text = render(report_of("nested"), Canvas(width))
    flat = " ".join(text.split())
    said = re.search(r"columns not shown at this width: ([\w, ]+?) parameters", flat)
    assert (said.group(1).split(", ") if said else []) == gone


def test_a_meaning_wraps_before_it_goes(report_of):
    text = render(report_of("nested"), Canvas(100))
    assert "one vector per" in text
    assert "not shown" not in text


def cells_before(line, word):
    return cell_len(line[: line.index(word)])


@pytest.mark.parametrize("width", [120, 200, None])
def test_two_cell_letters_keep_the_columns_aligned(report_of, width):
    lines = render(report_of("nested", language="zh"), Canvas(width)).splitlines()
    heading = next(line for line in lines if "命名形状" in line)
    for name, dims in (("token_ids", "B n "), ("scores", "B h n n"), ("logits", "B n vocab_size")):
        line = next(line for line in lines if line.strip().startswith(name))
        assert cells_before(line, dims) == cells_before(heading, "命名形状")
        assert cells_before(line, "float32" if name != "token_ids" else "int64") == cells_before(
            heading, "类型"
        )


def test_without_colour_there_is_no_escape(report_of):
    for reporter in REPORTERS:
        assert "\x1b" not in reporter.render(report_of("nested"), Canvas())
    assert "\x1b" not in render(report_of("nested"), Canvas(80))


def test_colour_changes_nothing_else(report_of):
    plain = render(report_of("nested"), Canvas(120))
    colored = render(report_of("nested"), Canvas(120, color=True))
    assert "\x1b[" in colored
    stripped = [line.rstrip() for line in ANSI.sub("", colored).splitlines()]
    assert stripped == plain.splitlines()


def test_ascii_screens_get_ascii_rules(report_of):
    text = render(report_of("nested"), Canvas(120, unicode=False))
    assert text.isascii()


def test_a_name_from_foreign_code_cannot_style_or_break_the_table(writer):
    from shapetrace.report.document import build_report  # noqa: PLC0415

    writer.enter("", "Model")
    writer.made("[red]x[/red] :smile:", "B n")
    writer.leave()
    text = render(build_report(writer.trace(), "tensors", "en", folded=True), Canvas(120))
    assert "[red]x[/red] :smile:" in text
