"""Our own model, stripped of its annotations and annotated again: the same shapes and names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import shapetrace.model
from shapetrace.annotation import Wishes, write_in_place
from shapetrace.api.annotating.annotate import annotate_target
from shapetrace.api.preparing.request import Request
from tests.api.annotating.enforced import forgetting
from tests.api.annotating.stripped import annotations, strip

RUNS = {
    "decoder": ["token_ids:int64[B=2,n=5]<50"],
    "encoder_decoder": ["token_ids:int64[B=2,m=5]<50", "target_ids:int64[B,n=7]<50"],
}


def expected(target, place, ours):
    """What runs can know of a place: our annotation, but for three explained differences."""
    allowed = {ours}
    if target == "encoder_decoder" and place[0] != "encoder_decoder.py":
        # Parts that the encoder calls with the source's `m` and the decoder with the target's
        # `n`; the encoder alone is called with `m`.
        allowed |= {re.sub(r"\bn\b", name, ours) for name in ("m", "m_or_n")}
    # No run passed None, and no default says that it may come.
    return allowed | {one.removesuffix(" | None") for one in allowed}


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """A folder with our model, without its annotations."""
    return strip(tmp_path_factory.mktemp("stripped")).parent


@pytest.fixture(scope="module")
def ours():
    """Our annotations, by place."""
    return annotations(Path(shapetrace.model.__file__).parent)


@pytest.mark.slow
@pytest.mark.parametrize("target", RUNS)
def test_stripped_and_annotated_again(target, tmp_path, stripped, ours):
    package, make = shutil.copytree(stripped, tmp_path / "copy") / "own_model", "make_own.py"
    with forgetting(package.parent):
        wanted = Request(f"{package.parent / make}:{target}", RUNS[target])
        result = annotate_target(wanted, Wishes("all"))
    write_in_place(result.files)
    theirs = annotations(package)
    both = ours.keys() & theirs.keys()
    equal = sum(theirs[place] == ours[place] for place in both)
    print(f"{target}: {len(both)} annotations, {equal} to the letter as we wrote them")
    assert len(both) >= 50
    unexplained = {
        place: (ours[place], theirs[place])
        for place in both
        if theirs[place] not in expected(target, place, ours[place])
    }
    assert unexplained == {}
