"""Annotated models, enforced by jaxtyping and beartype on ways that the given call does not go.

The calls are written by hand for each model, at sizes that no run of `annotate` has seen.
"""

import textwrap
from dataclasses import dataclass

import pytest
import torch

from shapetrace.annotation import Wishes, write_in_place
from shapetrace.api.annotating.annotate import annotate_target
from shapetrace.api.preparing.request import Request
from tests.api.annotating.enforced import forgetting, imported

HEAD = "import torch\nfrom torch import Tensor, nn\nfrom torch.nn import functional as F\n"


@dataclass(frozen=True)
class Model:
    """A model: its source, the inputs that `annotate` is given, and calls that it is not."""

    source: str
    inputs: tuple[str, ...]
    calls: tuple[str, ...]
    lines: tuple[str, ...]
    arguments: tuple[str, ...] = ()


MODELS = {
    "loss only with targets": Model(
        """
class Net(nn.Module):
    def __init__(self, width=8, vocab=20):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, width), nn.Linear(width, vocab)
    def forward(self, ids, targets=None):
        x = self.embed(ids)
        if targets is not None:
            logits = self.head(x)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        else:
            logits, loss = self.head(x[:, [-1]]), None
        return logits, loss
""",
        ("ids:int64[B=2,n=5]<20", "targets:int64[B=2,n=5]<20"),
        (
            "Net()(torch.zeros(3, 11, dtype=torch.int64))",
            "Net(10, 30)(*torch.zeros(2, 4, 7, dtype=torch.int64))",
        ),
        (') -> tuple[Float[Tensor, "B n_or_1 vocab"], Float[Tensor, ""] | None]:',),
    ),
    "one half of a union": Model(
        """
class Net(nn.Module):
    def __init__(self, width=6, vocab=20):
        super().__init__()
        self.out = nn.Linear(width, vocab)
    def forward(self, x: Tensor, chunk: int = 0) -> Tensor | list[Tensor]:
        return [self.out(p) for p in x.split(chunk, 1)] if chunk else self.out(x)
""",
        ("x:float32[B=2,n=8,width=6]",),
        ("Net()(torch.ones(3, 5, 6))", "Net()(torch.ones(3, 11, 6), 4)", "Net(4, 9)(torch.ones(1, 2, 4), 3)"),
        ('x: Float[Tensor, "B n width"],',),
    ),
    "training alone": Model(
        """
class Drop(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p
    def forward(self, x):
        if not self.training:
            return x
        return x * torch.rand(x.shape[:1] + (1,) * (x.ndim - 1)).ge(self.p)
class Net(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.drop, self.w = Drop(), nn.Linear(d, d)
    def forward(self, x, skip: bool = False):
        if skip:
            return None
        return self.drop(self.w(x))
""",
        ("x:float32[B=2,n=5,d=6]",),
        ("Net().train()(torch.ones(3, 9, 6))", "Net(4).eval()(torch.ones(1, 2, 4))", "Net()(torch.ones(3, 9, 6), skip=True)"),
        (') -> Float[Tensor, "B n d"] | None:',),
    ),
    "a flag of the constructor": Model(
        """
class Net(nn.Module):
    def __init__(self, d=6, heads=2, pooled=False, bias=True):
        super().__init__()
        self.pooled, self.heads = pooled, heads
        self.b = nn.Parameter(torch.zeros(d)) if bias else None
    def forward(self, x, mask=None):
        if self.b is not None:
            x = x + self.b
        if mask is not None:
            x = x.masked_fill(mask.unsqueeze(-1), 0)
        if self.pooled:
            x = x.mean(1)
        return x
""",
        ("x:float32[B=2,n=5,d=6]",),
        (
            "Net(pooled=True)(torch.ones(3, 9, 6))",
            "Net(4, bias=False)(torch.ones(1, 2, 4))",
            "Net()(torch.ones(3, 9, 6), torch.ones(3, 9).bool())",
        ),
        (),
    ),
    "the class's own words": Model(
        """
class Part(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b, self.w = a, b, nn.Linear(a, b)
    def forward(self, x):
        return self.w(x)
class Net(nn.Module):
    def __init__(self, nin=6, nhid=10, nout=4):
        super().__init__()
        self.parts = nn.Sequential(Part(nin, nhid), Part(nhid, nout))
    def forward(self, x):
        return self.parts(x)
""",
        ("x:float32[B=2,n=5,nin=6]",),
        ("Net(3, 3, 5)(torch.ones(3, 9, 3))",),
        ('def forward(self, x: Float[Tensor, "B n a"]) -> Float[Tensor, "B n b"]:',),
    ),
    "bare annotations": Model(
        """
from typing import Optional, Tuple
class Net(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.w = nn.Linear(d, 2 * d)
    def forward(self, x: Tensor, pos: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        x = x if pos is None else x + pos
        gate, value = self.w(x).chunk(2, -1)
        return gate, value
""",
        ("x:float32[B=2,n=5,d=6]",),
        ("Net()(torch.ones(3, 9, 6))", "Net(4)(torch.ones(3, 9, 4), torch.ones(9, 4))"),
        (') -> Tuple[Float[Tensor, "B n d"], Float[Tensor, "B n d"]]:',),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_holds_on_the_other_ways_and_a_second_run_changes_nothing(name, tmp_path):
    model = MODELS[name]
    stem = "way_" + "".join(letter for letter in name if letter.isalpha())
    file = tmp_path / f"{stem}.py"
    file.write_text(HEAD + textwrap.dedent(model.source), encoding="utf-8")
    request = Request(f"{file}:Net", model.inputs, arguments=model.arguments)
    with forgetting(tmp_path):
        write_in_place(annotate_target(request).files)
    text = file.read_text(encoding="utf-8")
    assert "jaxtyping" in text
    for line in model.lines:
        assert line in text
    with forgetting(tmp_path):
        again = annotate_target(request, Wishes(replace=True))
    assert [one for one in again.files if one.changed] == []
    with imported(tmp_path, stem, [stem], "beartype.beartype") as made:
        for call in model.calls:
            with torch.no_grad():
                eval(call, {"torch": torch, **vars(made)})
