"""Failures that people reported: what is said of each is true, and its origins are named."""

import re

import pytest
import reported_images  # noqa: F401 - registers its reports
import reported_losses  # noqa: F401
import reported_sequences  # noqa: F401
from reports import REPORTS

import shapetrace

_CLAIM = re.compile(r"axis \d+ of `[^`]*` is \d+")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.kind.__name__)
def test_what_is_said_is_true(report):
    model = report.kind()
    with pytest.raises(Exception) as caught, shapetrace.record(model) as rec:
        model(*report.inputs)
    text = rec.trace.explain()
    assert caught.value.__notes__ == [text]
    clash = "".join(line for line in text.splitlines() if line.startswith("  clash:"))
    claims = set(_CLAIM.findall(clash))
    assert claims <= report.axes, text
    assert bool(claims) == bool(report.axes), text
    for word in (*report.words, *report.origins):
        assert word in text, text
    assert len(set(text.splitlines())) == len(text.splitlines()), text
