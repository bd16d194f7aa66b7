"""Models of several kinds: annotated, then run at new sizes with every annotation enforced."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.annotate import Wishes, write_in_place
from shapetrace.api.annotating import annotate
from shapetrace.api.tracing import Request

HERE = Path(__file__).parent

RUNS = {
    "Tagger": (["words:int64[B=2,n=5]<40"], "torch.arange(33).reshape(3, 11) % 40"),
    "UNet": (["image:float32[B=2,3,H=16,W=24]"], "torch.randn(1, 3, 40, 8)"),
    "ViT": (["image:float32[B=2,3,H=16,W=24]"], "torch.randn(5, 3, 12, 20)"),
    "GCN": (
        ["x:float32[N=7,features=6]", "adjacency:float32[N,N]"],
        "torch.randn(9, 6), torch.ones(9, 9)",
    ),
}

CODE = """
import jaxtyping, torch
with jaxtyping.install_import_hook("others", "beartype.beartype"):
    import others
for name, inputs in {runs!r}.items():
    torch.manual_seed(0)
    model = getattr(others, name)().eval()
    out = model(*eval("(" + inputs + ",)"))
    flat = []
    def visit(x):
        if isinstance(x, torch.Tensor):
            flat.append(x.double().sum().item().hex())
        else:
            [visit(y) for y in (x.values() if isinstance(x, dict) else x)]
    visit(out)
    print(name, flat)
"""


def outputs(folder):
    code = CODE.format(runs={name: inputs for name, (_, inputs) in RUNS.items()})
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_annotated_enforced_and_equal_to_the_bit(tmp_path, capsys):
    plain, typed = tmp_path / "plain", tmp_path / "typed"
    for folder in (plain, typed):
        folder.mkdir()
        shutil.copy(HERE / "others.py.txt", folder / "others.py")
    annotated = tensors = 0
    for name, (specs, _) in RUNS.items():
        for known in ("others", "shapetrace_target_others"):
            sys.modules.pop(known, None)
        result = annotate(Request(f"{typed / 'others.py'}:{name}", specs), Wishes())
        write_in_place(result.files)
        annotated += sum(len(file.written) for file in result.files)
        tensors += result.tensors
        assert not [one for one in result.left_out if "dropped" in one.reason]
    with capsys.disabled():
        print(f"\n{annotated} of {tensors} tensor parameters and returns annotated")
    assert annotated / tensors >= 0.95
    assert outputs(typed) == outputs(plain)
    text = (typed / "others.py").read_text()
    for line in (
        'state: tuple[Float[torch.Tensor, "2 B hidden"], Float[torch.Tensor, "2 B hidden"]] | None',
        'words: Int[torch.Tensor, "B n"],',
        'image: Float[torch.Tensor, "B 3 H W"],',
        ') -> tuple[Float[torch.Tensor, "B x_1 2"], Int[torch.Tensor, "B x_1 2"]]:',
        'def normalised(adjacency: Float[torch.Tensor, "N N"]) -> Float[torch.Tensor, "N N"]:',
    ):
        assert line in text
    assert text.count("from jaxtyping import Float, Int\n") == 1
