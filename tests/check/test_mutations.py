"""One annotation of a right model made wrong at a time: each that is truly wrong is found.

The model is run once, at all the sizes; a mutant is the same runs with one declaration
replaced and judged anew by jaxtyping. A few mutants go the whole way, from the source.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import jaxtyping
import pytest
import torch

from shapetrace.api import check_runs
from shapetrace.api.check_runs import _Checking, _probed_dims, check_target
from shapetrace.api.naming import probed, run_tamely
from shapetrace.api.tracing import Request, read_inputs
from shapetrace.capture.braces import filled
from shapetrace.capture.declarations import Declared, verdicts
from shapetrace.capture.elsewhere import elsewhere, owned_sizes
from shapetrace.capture.target import resolve
from shapetrace.check import check
from shapetrace.check.findings import by_accident, from_mismatches
from shapetrace.dims import Declaration, DeclaredShape

MODEL = Path(__file__).parent / "annotated_model.py"
REQUEST = Request(f"{MODEL}:Net", inputs=["ids:int64[B=3,n=5]<50"])
NAMES = ("B", "n", "d_model", "h", "d_k", "d_ff", "vocab_size", "h*d_k", "1", "7")


class Runs:
    """The model's runs, recorded once."""

    def __init__(self):
        target, inputs = resolve(REQUEST.target), read_inputs(REQUEST)
        model = target.build().eval()
        self.owned = owned_sizes(model)
        subject = target.subject(inputs)
        probing, wanted = probed(subject)
        run = _Checking(REQUEST, target, model, inputs, lambda _: None)
        run.owned = self.owned
        run.config = {n: s for n, s in subject.integers.items() if n in probing.moved}
        seen = []
        original = check_runs.check
        check_runs.check = lambda trace, **_: seen.append(trace) or []
        try:
            run._as_asked(probing, wanted)
            run._other_inputs(wanted)
        finally:
            check_runs.check = original
        self.inputs = seen
        self.models = [trace for _, _, trace in elsewhere(subject, probing, wanted, run_tamely)]
        self.probed = _probed_dims(seen[0], probing, {})

    def findings(self, mutate=lambda trace: trace):
        """All that is found, in the order of the runs; the first suffices."""
        for number, trace in enumerate(self.inputs):
            mutant = mutate(trace)
            dims = self.probed if number == 0 else None
            yield from from_mismatches(mutant, check(mutant, probed=dims, owned=self.owned))
        for trace in self.models:
            mutant = mutate(trace)
            yield from by_accident(from_mismatches(mutant, check(mutant, pinned=())))


@pytest.fixture(scope="module")
def runs():
    return Runs()


def mutants(shape):
    """Wrong versions of one declared shape: what was done, dtype and dims."""
    words = shape.dims.split()
    for i in range(len(words) - 1):
        if words[i] != words[i + 1]:
            swapped = [*words[:i], words[i + 1], words[i], *words[i + 2 :]]
            yield "swap", shape.dtype, " ".join(swapped)
    for i, word in enumerate(words):
        for name in NAMES:
            if name != word:
                yield "name", shape.dtype, " ".join([*words[:i], name, *words[i + 1 :]])
        yield "missing", shape.dtype, " ".join([*words[:i], *words[i + 1 :]])
        yield "extra", shape.dtype, " ".join([*words[:i], "1", *words[i:]])
    for dtype in ("Float", "Int", "Bool", "Complex"):
        if dtype != shape.dtype:
            yield "dtype", dtype, shape.dims


def mutated(trace, place, dtype, dims):
    """The trace as it would be with another declaration at one place."""
    scopes = {}
    for number, record in enumerate(trace.tensors):
        scopes.setdefault(record.scope, []).append(number)
    tensors = list(trace.tensors)
    for numbers in scopes.values():
        records = [tensors[number] for number in numbers]
        if not any(place_of(trace, record) == place for record in records):
            continue
        call = [(r, declared(trace, r, place, dtype, dims)) for r in records]
        for number, judged in zip(numbers, verdicts(call), strict=True):
            tensors[number] = judged
    return replace(trace, tensors=tuple(tensors))


def place_of(trace, record):
    site = trace.sites[record.site]
    if record.declared is None:
        return None
    if site.kind == "return":
        return site.function, "return", 0
    line = 0 if site.kind == "argument" else site.line
    return site.function, site.name, line


def declared(trace, record, place, dtype, dims):
    if record.declared is None:
        return None
    shape = record.declared.shapes[0]
    if place_of(trace, record) == place:
        shape = DeclaredShape(dtype, dims)
    held = tuple((text[1:-1], str(value), "") for text, value in record.declared.values)
    full, _, values = filled(shape.dims, held)
    array = getattr(jaxtyping, shape.dtype)[torch.Tensor, full or "?"]
    declaration = Declaration(record.declared.text, (shape,), values=values)
    return Declared(declaration, (array,))


SPLIT = ("Attention.split", "return", "B {self.h} n {self.d_k}")
EQUIVALENT = {  # `h` and `d_k` are what `self.h` and `self.d_k` hold, in every run
    (*SPLIT, "B h n {self.d_k}"),
    (*SPLIT, "B {self.h} n d_k"),
}


def test_the_model_is_right(runs):
    assert list(runs.findings()) == []


def test_every_wrong_annotation_is_found(runs):
    places = {}
    for record in runs.inputs[0].tensors:
        place = place_of(runs.inputs[0], record)
        if place is not None:
            places.setdefault(place, record.declared.shapes[0])
    assert len(places) >= 19
    tried, found, survivors = Counter(), Counter(), []
    for place, shape in places.items():
        for kind, dtype, dims in mutants(shape):
            tried[kind] += 1
            wrong = runs.findings(lambda t, p=place, y=dtype, d=dims: mutated(t, p, y, d))
            if next(wrong, None) is not None:
                found[kind] += 1
            else:
                survivors.append((*place[:2], shape.dims, dims))
    print(f"{sum(found.values())} of {sum(tried.values())} found: ", dict(found), dict(tried))
    for survivor in survivors:
        print(survivor)
    assert set(survivors) == EQUIVALENT


@pytest.mark.parametrize(
    ("right", "wrong", "code"),
    [
        ('joined: Float[Tensor, "B n h*d_k"]', 'joined: Float[Tensor, "B n d_model"]', "ST302"),
        ('hidden: Float[Tensor, "B n d_ff"]', 'hidden: Float[Tensor, "n B d_ff"]', "ST101"),
        ('mean: Float[Tensor, "B d_model"]', 'mean: Float[Tensor, "B 1 d_model"]', "ST102"),
        ('ids: Int[Tensor, "B n"]', 'ids: Float[Tensor, "B n"]', "ST103"),
        ('gram: Float[Tensor, "d_model d_model"]', 'gram: Float[Tensor, "16 16"]', "ST302"),
    ],
)
def test_from_the_source(tmp_path, right, wrong, code):
    source = MODEL.read_text(encoding="utf-8")
    assert source.count(right) == 1
    file = tmp_path / f"mutant_{abs(hash(wrong))}.py"
    file.write_text(source.replace(right, wrong), encoding="utf-8")
    result = check_target(replace(REQUEST, target=f"{file}:Net"))
    line = source[: source.index(right)].count("\n") + 1
    assert [(one.line, one.code) for one in result.findings] == [(line, code)]
