"""Calls that lie in calls like themselves: however deep, a report can walk them and is short."""

import json
import re
import sys

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.report import REPORTERS, Canvas
from shapetrace.report.document import build_report

BY_NAME = {reporter.name: reporter for reporter in REPORTERS}


class Down(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth = depth

    def forward(self, x):
        return self.step(x, self.depth)

    def step(self, x, left):
        y = x * 2
        return y if left == 0 else self.step(y, left - 1)


class Growing(Down):
    def step(self, x, left):
        y = torch.cat((x, x[:1]))
        return y if left == 0 else self.step(y, left - 1)


class Endless(nn.Module):
    def forward(self, x):
        return self.other(x)

    def other(self, x):
        return self.forward(x)


def _shown(trace, form, *, folded):
    reporter = BY_NAME[form]
    return reporter.render(build_report(trace, "tensors", "en", folded=folded), Canvas())


def _recorded(model, error=None):
    watch = shapetrace.record(model)
    if error is None:
        with watch:
            model(torch.ones(2, 3))
    else:
        with pytest.raises(error), watch:
            model(torch.ones(2, 3))
    return watch.trace


def test_a_recursion_is_one_line_with_how_deep_it_went():
    text = _shown(_recorded(Down(5)), "table", folded=True)
    calls = [line for line in text.splitlines() if "step()" in line]
    deep = [re.search(r"step\(\) \.\.\. (\d+) deep", line) for line in calls]
    assert len(calls) <= 3  # the first takes what its caller shows, the last calls no other
    assert sum(int(found[1]) if found else 1 for found in deep) == 6
    whole = _shown(_recorded(Down(5)), "table", folded=False)
    assert whole.count("step()") == 6


def test_calls_that_differ_are_each_kept():
    text = _shown(_recorded(Growing(3)), "table", folded=True)
    assert " deep" not in text
    for rows in (3, 4, 5, 6):
        assert f"{rows} 3 " in text


@pytest.mark.slow
def test_every_format_shows_a_recursion_that_python_ended():
    trace = _recorded(Endless(), RecursionError)
    depth = len(trace.scopes)
    assert depth > 100
    limit = sys.getrecursionlimit()
    for form in BY_NAME:
        text = _shown(trace, form, folded=form != "csv")
        assert form == "csv" or "RecursionError" in text
    assert sys.getrecursionlimit() == limit
    text = _shown(trace, "table", folded=True)
    failed = text[text.index("failed:") :]
    assert len(failed) < 1500
    assert json.loads(_shown(trace, "json", folded=True))["failure"]["type"] == "RecursionError"
