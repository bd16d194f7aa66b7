"""Which format is meant."""

from pathlib import Path

import pytest

from shapetrace.errors import ShapetraceError
from shapetrace.report import REPORTERS, choose_format


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        (None, None, "table"),
        ("csv", None, "csv"),
        ("json", "x.csv", "json"),
        (None, "x.csv", "csv"),
        (None, "x.JSON", "json"),
        (None, "x.md", "md"),
        (None, "a.json/x.txt", "table"),
    ],
)
def test_choose(name, output, expected):
    assert choose_format(name, None if output is None else Path(output), REPORTERS).name == expected


def test_an_unknown_suffix_lists_the_choices():
    with pytest.raises(ShapetraceError) as caught:
        choose_format(None, Path("out.xls"), REPORTERS)
    known = ", ".join(suffix for reporter in REPORTERS for suffix in reporter.suffixes)
    assert str(caught.value) == (
        f"cannot tell the format from the name 'out.xls': use {known}, or give --format"
    )


def test_an_unknown_name_gives_the_nearest():
    with pytest.raises(ShapetraceError, match="unknown format 'jsn': did you mean 'json'"):
        choose_format("jsn", None, REPORTERS)


def test_names_and_suffixes_are_unique():
    names = [reporter.name for reporter in REPORTERS]
    suffixes = [suffix for reporter in REPORTERS for suffix in reporter.suffixes]
    assert len(set(names)) == len(names)
    assert len(set(suffixes)) == len(suffixes)
