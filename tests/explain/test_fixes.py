"""A fix is offered only where it runs, and where it is offered, the model runs with it."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import shapetrace


class Projected(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.fc = nn.Linear(width, 3)

    def forward(self, x):
        return self.fc(x)


class Chained(nn.Module):
    """The first convolution is not the only one that does not fit."""

    def __init__(self, channels=3, last=5):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(channels, 4, 1), nn.Conv1d(last, 2, 1))

    def forward(self, x):
        return self.net(x)


class Recurs(nn.Module):
    def __init__(self, *, first=False):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=first)

    def forward(self, x):
        state = x.new_zeros(1, x.shape[0], 6)
        out, _ = self.lstm(x, (state, state))
        return out


class Scores(nn.Module):
    def forward(self, q, k):
        return q @ k


class ScoresTurned(nn.Module):
    def forward(self, q, k):
        return q @ k.transpose(-2, -1)


class Classes(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)


class ClassesMoved(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits.permute(0, 3, 1, 2), labels)


class Both(nn.Module):
    def __init__(self, k=8, v=8):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, kdim=k, vdim=v, batch_first=True)

    def forward(self, x, memory):
        return self.attn(x, memory, memory)[0]


def f(*shape):
    return torch.zeros(shape)


def labels(*shape):
    return torch.zeros(shape, dtype=torch.int64)


RUN = [
    (Projected(), Projected(5), (f(2, 5),), "make `self.fc` with in_features=5"),
    (Recurs(), Recurs(first=True), (f(3, 5, 4),), "make `self.lstm` with batch_first=True"),
    (Scores(), ScoresTurned(), (f(5, 8), f(5, 8)), "as `k.transpose(-2, -1)`"),
    (Chained(2), Chained(3, 4), (f(2, 3, 7),), ""),
    (Chained(2, 4), Chained(3, 4), (f(2, 3, 7),), "make `self.net[0]` with in_channels=3"),
    (
        Classes(),
        ClassesMoved(),
        (f(2, 4, 6, 3), labels(2, 4, 6)),
        "use `logits.permute(0, 3, 1, 2)`",
    ),
    (
        Both(),
        Both(12, 12),
        (f(2, 3, 8), f(2, 5, 12)),
        "make `self.attn` with kdim=12, vdim=12",
    ),
    (Scores(), ScoresTurned(), (f(5, 8), f(7, 6)), ""),
]


@pytest.mark.parametrize(
    ("broken", "mended", "inputs", "fix"),
    RUN,
    ids=[f"{type(row[0]).__name__}{number}" for number, row in enumerate(RUN)],
)
def test_a_fix_is_one_that_runs(broken, mended, inputs, fix, tmp_path):
    with pytest.raises(RuntimeError) as caught, shapetrace.record(broken) as rec:
        broken(*inputs)
    offered = [line for line in caught.value.__notes__[0].splitlines() if line[:6] == "  fix:"]
    assert len(offered) == bool(fix)
    assert all(fix in line for line in offered)
    if fix:
        mended(*inputs)  # by hand, what the fix says
    rec.trace.save(tmp_path / "trace")
    assert shapetrace.load(tmp_path / "trace").explain() == rec.trace.explain()


def test_trying_a_fix_leaves_the_model_as_it_was():
    model = Both().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    calls = []
    model.attn.register_forward_hook(lambda *_: calls.append(1))
    state = torch.random.get_rng_state()
    with pytest.raises(RuntimeError), shapetrace.record(model):
        model(f(2, 3, 8), f(2, 5, 12))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not calls
    assert model.training
    assert model.attn.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(type(p) is nn.Parameter and not p.is_meta for p in model.parameters())


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.zeros(2, 16, 32))

    def forward(self, x, ends):
        return F.grouped_mm(x, self.up, offs=ends)


@pytest.mark.skipif(not hasattr(F, "grouped_mm"), reason="this torch has no grouped product")
def test_experts_without_values_want_another_dtype():
    with torch.device("meta"):
        model, x = Experts(), f(8, 16)
        ends = torch.zeros(2, dtype=torch.int32)
    with pytest.raises(RuntimeError) as caught, shapetrace.record(model):
        model(x, ends)
    text = caught.value.__notes__[0]
    assert "`x` is float32, `self.up` is float32: the product takes bfloat16" in text
    assert "fix: make the model bfloat16: `--dtype bfloat16`" in text
    assert "offs" not in text.partition("clash")[2]
    model.to(torch.bfloat16)(x.bfloat16(), ends)
