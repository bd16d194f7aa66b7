"""Remembered results have the shapes, strides and dtypes that the operators give."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from shapetrace.capture.probing.probe_runs import ProbeRuns
from shapetrace.capture.recorder.swap import swap
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.instances import subject_of
from shapetrace.capture.weightless.memo import Remembering
from shapetrace.capture.weightless.modes import meta
from tests.capture.models_under_test import CASES


def looks(tensors):
    return [(t.shape, t.stride(), t.dtype) for t in tensors]


def operations(x, y):
    """Functions, views, changes in place, several results, numbers of other types."""
    z = x + y
    z += 1
    halves = z.chunk(2, -1)
    best = z.max(-1)
    grown = torch.cat([x.unsqueeze(0), y.unsqueeze(0)])
    turned = x.t().contiguous()
    counted = torch.zeros(3, 2)
    return [
        *(z, *halves, *best, grown, turned, counted),
        *(x * 2, x.to(torch.int64) * 2, x.to(torch.int64) * 2.0, (x > 0) & True),
        *(x.expand(2, *x.shape), x.new_ones(4).fill_(2), x.unsqueeze_(0), x.squeeze(0)),
    ]


@pytest.mark.parametrize("shape", [(4, 6), (2, 2)])
def test_a_second_time_looks_like_the_first(shape):
    known = {}
    found = []
    with torch.no_grad(), torch.device("meta"):
        expected = looks(operations(torch.ones(shape), torch.ones(shape)))
        for _ in range(3):
            with Remembering(known):
                found.append(looks(operations(torch.ones(shape), torch.ones(shape))))
    assert found == [expected] * 3


def test_a_default_dtype_is_part_of_the_question():
    known = {}
    with torch.no_grad(), torch.device("meta"), Remembering(known):
        first = torch.zeros(2).dtype
        torch.set_default_dtype(torch.float64)
        try:
            second = torch.zeros(2).dtype
        finally:
            torch.set_default_dtype(torch.float32)
    assert (first, second) == (torch.float32, torch.float64)


def test_what_fails_fails_again():
    known = {}
    with torch.no_grad(), torch.device("meta"), Remembering(known):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="reduction dim"):
                torch.ones(2, 3) @ torch.ones(4, 5)


@pytest.mark.parametrize("case", CASES)
def test_probes_see_the_same_with_and_without(case):
    build, inputs = CASES[case]
    model = build().eval()
    subject = subject_of(copy.deepcopy(model), CallInputs(inputs()), None)
    plain, quick = ProbeRuns(subject), ProbeRuns(subject)
    plain.enter(), quick.enter()
    if quick.weightless.__name__ != "meta_remembered":
        pytest.skip("it looks at values")
    plain.weightless = meta
    swapped = swap(quick.wanted)
    try:
        for name, size in subject.dims.items():
            one, other = plain.observe({name: 2 * size}), quick.observe({name: 2 * size})
            assert (one is None) == (other is None)
            assert one is None or one.shapes == other.shapes
            again = quick.observe({name: 2 * size})
            assert one is None or again.shapes == one.shapes
    finally:
        swapped.undo()


def test_a_layer_is_worked_out_once():
    known = {}
    layer = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)).to("meta")
    with torch.no_grad(), torch.device("meta"), Remembering(known):
        layer(torch.ones(2, 4))
        met = len(known)
        layer(torch.ones(2, 4))
    assert len(known) == met
