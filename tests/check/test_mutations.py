"""One annotation of a right model made wrong at a time: each that is truly wrong is found.

The model is run once, at all the sizes; a mutant is the same runs with one declaration
replaced and judged anew by jaxtyping. A few mutants go the whole way, from the source.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jaxtyping
import pytest
import torch

from shapetrace.annotation import Wishes, write_in_place
from shapetrace.api.annotating.annotate import annotate_target
from shapetrace.api.checks import check_target as check_runs
from shapetrace.api.checks.check_target import check_target
from shapetrace.api.preparing.request import Request
from shapetrace.capture.declared.evaluate import Declared, verdicts
from shapetrace.capture.source.braces import filled
from shapetrace.check import check
from shapetrace.check.findings import by_accident, from_mismatches
from shapetrace.dims import Declaration, DeclaredShape
from tests.api.annotating.enforced import forgetting

MODEL = Path(__file__).parent / "annotated_model.py"
REQUEST = Request(f"{MODEL}:Net", inputs=["ids:int64[B=3,n=5]<50"])
NAMES = ("B", "n", "d_model", "h", "d_k", "d_ff", "vocab_size", "h*d_k", "1", "7")


class Runs:
    """A model's runs, recorded once, and how a check of the model judges each of them."""

    def __init__(self, request):
        self.judged = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(check_runs, "check", self._noted)
            check_target(request)

    def _noted(self, trace, **how):
        self.judged.append((trace, how))
        return []

    def findings(self, mutate=lambda trace: trace):
        """All that is found, in the order of the runs; the first suffices."""
        for trace, how in self.judged:
            mutant = mutate(trace)
            found = from_mismatches(mutant, check(mutant, **how))
            yield from by_accident(found) if "pinned" in how else found


@pytest.fixture(scope="module")
def runs():
    return Runs(REQUEST)


def mutants(shape, names):
    """Wrong versions of one declared shape: what was done, dtype and dims."""
    words = shape.dims.split()
    for i in range(len(words) - 1):
        if words[i] != words[i + 1]:
            swapped = [*words[:i], words[i + 1], words[i], *words[i + 2 :]]
            yield "swap", shape.dtype, " ".join(swapped)
    for i, word in enumerate(words):
        for name in names:
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
        return site.function, "return" + record.element, 0
    line = 0 if site.kind == "argument" else site.line
    return site.function, site.name + record.element, line


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


WHOLE = {"n_embd", "n_head", "n_kv", "vocab", "hidden", "classes", "1", "7"}
SOURCES = Path(__file__).parents[1] / "api/annotating"
WRITTEN = {
    "Model": (
        SOURCES / "small_gpt.py.txt",
        Request("", arguments=["n_layer=1"], inputs=["ids:int64[B=2,n=7]<50"]),
        ("n", "n_embd", "n_head", "head_dim", "7"),
        set(),
    ),
    "GCN": (
        SOURCES / "others.py.txt",
        Request("", inputs=["x:float32[N=7,features=6]", "adjacency:float32[N,N]"]),
        ("N", "features", "hidden", "classes", "1", "7"),
        set(),
    ),
}


def test_the_model_is_right(runs):
    assert list(runs.findings()) == []


def survivors(runs, names):
    """Mutants of which nothing is found; how many were tried and found is printed."""
    places = {}
    trace = runs.judged[0][0]
    for record in trace.tensors:
        place = place_of(trace, record)
        if place is not None:
            places.setdefault(place, record.declared.shapes[0])
    tried, found, left = Counter(), Counter(), set()
    for place, shape in places.items():
        for kind, dtype, dims in mutants(shape, names):
            tried[kind] += 1
            wrong = runs.findings(lambda t, p=place, y=dtype, d=dims: mutated(t, p, y, d))
            if next(wrong, None) is not None:
                found[kind] += 1
            else:
                left.add((*place[:2], shape.dims, dims))
    print(f"{sum(found.values())} of {sum(tried.values())} found: ", dict(found), dict(tried))
    print(*sorted(left), sep="\n")
    return places, left


def is_weaker(survivor, places):
    """Whether a mutant says less, and nothing wrong: an axis has a name that stands alone.

    The name is no size of the whole model, and nothing else in the function has it.
    """
    function, place, right, wrong = survivor
    new = set(wrong.split()) - set(right.split())
    others = {
        word
        for (other, name, _), shape in places.items()
        for word in shape.dims.split()
        if other == function and name != place
    }
    return len(new) == 1 and new.isdisjoint(others | WHOLE)


def test_every_wrong_annotation_is_found(runs):
    places, left = survivors(runs, NAMES)
    assert len(places) >= 19
    assert left == EQUIVALENT


@pytest.mark.parametrize("target", WRITTEN)
def test_every_wrong_annotation_is_found_where_annotate_wrote_them(target, tmp_path):
    source, request, names, equivalent = WRITTEN[target]
    file = tmp_path / f"written_{target}.py"
    shutil.copy(source, file)
    request = replace(request, target=f"{file}:{target}")
    with forgetting(tmp_path):
        write_in_place(annotate_target(request, Wishes("first")).files)
    with forgetting(tmp_path):
        runs = Runs(request)
        assert list(runs.findings()) == []
        places, left = survivors(runs, names)
    assert len(places) >= 8
    assert {one for one in left if not is_weaker(one, places)} == equivalent


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
