"""Other people's models: annotated, then run at new sizes with every annotation enforced.

Each model's files are copied to a folder, annotated in place (`--replace`), and imported
again through jaxtyping's import hook with beartype beside the files as they were: the
outputs are equal to the bit. The table is printed.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree

from shapetrace.annotation import Wishes, write_in_place
from shapetrace.api.annotating.annotate import annotate_target
from shapetrace.api.preparing.request import Request
from shapetrace.capture.proof.process import stand_by
from shapetrace.capture.target.inputs import from_specs
from shapetrace.dims.specs import parse_specs
from tests.api.annotating.enforced import forgetting, imported
from tests.api.annotating.real.cases import CASES, copied, findable

ENFORCED = "enforced_shapes.shapes"
"""A checker is found by the name of its module, so its folder is put where imports look."""


@pytest.fixture(scope="module", autouse=True)
def _packages(tmp_path_factory):
    before = list(sys.path)
    sys.path.append(str(Path(__file__).parent / "real"))
    findable(tmp_path_factory.mktemp("packages"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages' own
        if importlib.util.find_spec("transformers") is not None:
            stand_by("transformers.modeling_utils")
        yield
    sys.path[:] = before


@pytest.fixture(scope="module")
def shares():
    """Tensor parameters and returns by case: annotated, and all that ran; printed at the end."""
    found = {}
    yield found
    done, seen = (sum(pair[i] for pair in found.values()) for i in (0, 1))
    for name, (annotated, tensors) in {**found, "in all": (done, seen)}.items():
        print(f"{name:16}{annotated:5} of {tensors:4}  {annotated / max(1, tensors):.0%}")
    assert done >= 0.95 * seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_right_enforced_and_equal_to_the_bit(case, tmp_path, shares):
    if importlib.util.find_spec(case.package) is None:
        pytest.skip(f"{case.package} is not installed (make models)")
    plain, typed = tmp_path / "plain", tmp_path / "typed"
    plain.mkdir()
    copied(case, plain)
    shutil.copytree(plain, typed)
    file = typed / f"make_{case.name}.py"
    with forgetting(typed):
        result = annotate_target(Request(f"{file}:make", case.inputs), Wishes(replace=True))
    write_in_place(result.files)
    shares[case.name] = (result.tensors - missing(result), result.tensors)
    assert result.equal == len(result.runs)
    assert {**dict(result.runs[0]), **case.sizes} not in [dict(sizes) for sizes in result.runs]
    expected, found = (outputs(case, folder, hook) for folder, hook in ((plain, None), (typed, 1)))
    assert len(expected) == len(found) > 0
    for one, other in zip(expected, found, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def missing(result) -> int:
    """Places that held a tensor and have no annotation of its shape, or only of its rank."""
    without = (
        "dropped",
        "weakened",
        "has an annotation",
        "may be a",
        "is a ragged",
        "holds a tensor",
        "is in a gen",
    )
    return sum(one.reason.startswith(without) for one in result.left_out)


def outputs(case, folder, hook):
    """Every tensor that a folder's model returns at the sizes that no annotation has seen."""
    names = [file.stem for file in folder.glob("*.py")] if hook else []
    with imported(folder, f"make_{case.name}", names, ENFORCED) as made:
        torch.manual_seed(0)
        model = made.make().eval()
        inputs = from_specs(parse_specs(case.inputs).resized(case.sizes))
        with torch.no_grad():
            result = model(*inputs.args, **inputs.kwargs)
    leaves = _pytree.tree_leaves(result)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
