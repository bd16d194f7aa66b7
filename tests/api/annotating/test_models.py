"""Models of several kinds: annotated, then run at new sizes with every annotation enforced."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree

from shapetrace.annotation import Wishes, write_in_place
from shapetrace.api.annotating.annotate import annotate_target
from shapetrace.api.preparing.request import Request
from tests.api.annotating.enforced import forgetting, imported

HERE = Path(__file__).parent

RUNS = {
    "Tagger": (["words:int64[B=2,n=5]<40"], lambda: (torch.arange(33).reshape(3, 11) % 40,)),
    "UNet": (["image:float32[B=2,3,H=16,W=24]"], lambda: (torch.randn(1, 3, 40, 8),)),
    "ViT": (["image:float32[B=2,3,H=16,W=24]"], lambda: (torch.randn(5, 3, 12, 20),)),
    "GCN": (
        ["x:float32[N=7,features=6]", "adjacency:float32[N,N]"],
        lambda: (
            torch.randn(9, 6),
            torch.ones(9, 9),
        ),
    ),
}


def outputs(folder, enforced=()):
    """Every tensor that each model returns."""
    with imported(folder, "others", enforced) as others:
        found = []
        for name, (_, inputs) in RUNS.items():
            torch.manual_seed(0)
            model = getattr(others, name)().eval()
            found += _pytree.tree_leaves(model(*inputs()))
        return found


@pytest.mark.slow
def test_annotated_enforced_and_equal_to_the_bit(tmp_path, capsys):
    plain, typed = tmp_path / "plain", tmp_path / "typed"
    for folder in (plain, typed):
        folder.mkdir()
        shutil.copy(HERE / "others.py.txt", folder / "others.py")
    annotated = tensors = 0
    for name, (specs, _) in RUNS.items():
        with forgetting(typed):
            result = annotate_target(Request(f"{typed / 'others.py'}:{name}", specs), Wishes())
        write_in_place(result.files)
        annotated += sum(len(file.written) for file in result.files)
        tensors += result.tensors
        assert not [one for one in result.left_out if "dropped" in one.reason]
    with capsys.disabled():
        print(f"\n{annotated} of {tensors} tensor parameters and returns annotated")
    assert annotated / tensors >= 0.95
    expected, found = outputs(plain), outputs(typed, ["others"])
    assert len(expected) == len(found) >= len(RUNS)
    assert all(map(torch.equal, expected, found))
    text = re.sub(r"\s+", " ", (typed / "others.py").read_text())
    text = text.replace("[ ", "[").replace(" ]", "]").replace(",]", "]")
    for line in (
        'state: tuple[Float[torch.Tensor, "2 B hidden"], Float[torch.Tensor, "2 B hidden"]] | None',
        'words: Int[torch.Tensor, "B n"],',
        'image: Float[torch.Tensor, "B 3 H W"],',
        ') -> tuple[Float[torch.Tensor, "B H_1 2"], Int[torch.Tensor, "B H_1 2"]]:',
        'def normalised(adjacency: Float[torch.Tensor, "N N"]) -> Float[torch.Tensor, "N N"]:',
    ):
        assert line in text
    assert text.count("from jaxtyping import Float, Int ") == 1
