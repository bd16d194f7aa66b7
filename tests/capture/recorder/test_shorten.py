"""Runs that Ctrl-C ended, of more events than are kept: what is said of them still holds."""

import pytest
import torch
from torch import nn

from shapetrace.capture.recording import record
from shapetrace.report.document import build_report


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, times):
        x = self.first(x)
        for _ in range(times):
            x = x * 1
        return self.second(x)


class Stack(nn.Module):
    """Turns in several calls; an error in the last, in a call of its own."""

    def __init__(self, turns, error):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in turns)
        self.turns, self.error = turns, error

    def forward(self, x):
        for block, times in zip(self.blocks, self.turns, strict=True):
            x = block(x, times)
        last = x + 1
        return self.ends(last)

    def ends(self, last):
        raise self.error


def traced(turns, error):
    torch.manual_seed(0)
    with pytest.raises(type(error)), record(Stack(turns, error), repeats=False) as recording:
        recording._model(torch.ones(2, 4))
    return recording.trace


TURNS = [
    [4000],  # cut and ended in one call
    [400, 900, 4000, 300],  # begun before, within and after what is left out
    [10, 1500, 10, 10, 10, 1500, 10],  # calls that lie in it altogether
]


@pytest.mark.parametrize("turns", TURNS)
def test_calls_that_are_shown_are_those_of_the_run(turns):
    whole, cut = traced(turns, ValueError()), traced(turns, KeyboardInterrupt())
    assert not any("left out" in note for note in whole.notes)
    assert "left out" in cut.notes[0]
    assert len(cut.tensors) < len(whole.tensors)

    known = {(scope.path, scope.failed) for scope in whole.scopes}
    shown = [(scope.path, scope.failed) for scope in cut.scopes]
    assert set(shown) <= known
    assert {path for path, failed in known if failed} == {p for p, failed in shown if failed}
    assert cut.scopes[cut.failure.scope].path == whole.scopes[whole.failure.scope].path
    last = [trace.sites[trace.tensors[-1].site].name for trace in (whole, cut)]
    assert last[0] == last[1]


@pytest.mark.parametrize("turns", TURNS)
def test_no_call_with_a_gap_claims_to_be_counted_in_full(turns):
    whole, cut = traced(turns, ValueError()), traced(turns, KeyboardInterrupt())
    reports = [build_report(trace, "modules", "en", folded=False) for trace in (whole, cut)]
    full = {row.path: row.flops for row in reports[0].rows}
    complete = [row for row in reports[1].rows if row.complete]
    assert all(row.flops == full[row.path] for row in complete)
    assert len(complete) < len(reports[1].rows)


def test_a_short_interrupted_run_is_kept_whole():
    whole, same = traced([20, 30], ValueError()), traced([20, 30], KeyboardInterrupt())
    assert [t.shape for t in same.tensors] == [t.shape for t in whole.tensors]
    assert same.notes == whole.notes
