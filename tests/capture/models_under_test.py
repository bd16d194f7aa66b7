"""Small models that a user might write, each odd in one way."""

from __future__ import annotations

import dataclasses
import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, drop: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        hidden = F.gelu(self.up(self.norm(x)))
        return x + self.drop(self.down(hidden))


class Stack(nn.Module):
    def __init__(self, width: int = 8, depth: int = 4, drop: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, drop) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Picky(nn.Module):
    """Equal modules whose work hangs on a value."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum().item() > 0:
            x = self.inner(x)
        return x.relu()


class Values(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Picky() for _ in range(3))

    def forward(self, x):
        for sign, part in zip((1, -1, 1), self.parts, strict=True):
            x = part(x * sign)
        return x


class Counting(nn.Module):
    """Equal modules that differ in what they do each time."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        Counting.calls += 1
        y = self.inner(x)
        if Counting.calls % 2 == 0:
            z = y @ y.transpose(-1, -2)
            y = z @ y
        return y


class Alternating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Counting() for _ in range(3))

    def forward(self, x):
        Counting.calls = 0
        for part in self.parts:
            x = part(x)
        return x


class Indexed(nn.Module):
    """Layers that know their index, and take another way in the last."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        x = self.inner(x)
        if self.layer_idx == 2:
            x = torch.cat([x, x], dim=1)
        return x


class Depth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Indexed(i) for i in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Shared(nn.Module):
    """One linear layer used twice, under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


class Recursive(nn.Module):
    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.child = Recursive(depth - 1) if depth else None

    def forward(self, x, again: int = 1):
        x = self.inner(x)
        if again:
            x = self.forward(x, again - 1)
        return self.child(x, 0) if self.child is not None else x


@dataclasses.dataclass
class Answer:
    logits: Tensor
    states: tuple[Tensor, ...]
    extra: Tensor | None = None


class Answers(nn.Module):
    """A dataclass, dicts, tuples and None."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, batch):
        x, mask = batch["x"], batch.get("mask")
        pair = (self.inner(x), x)
        table = {"a": pair[0], "b": [pair[1]]}
        return Answer(table["a"], tuple(table["b"]), mask)


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y += 1
        y[:, 0] = 0
        y.mul_(2)
        view = y[:, 1:]
        view.zero_()
        self.kept = y
        return self.kept


class Closures(nn.Module):
    def forward(self, x):
        scale = 2.0

        def double(t):
            u = t * scale
            return u.clone()

        steps = [lambda t: t + 1, functools.partial(torch.mul, other=3)]
        for step in steps:
            x = step(x)
        self.later = double
        first, *rest = (double(x), x, x)
        if (best := first.max(dim=-1)).values.numel():
            x = best.values
        return x, [t.sum() for t in rest], {k: v + 0 for k, v in enumerate(rest)}


class Generators(nn.Module):
    def pieces(self, x):
        for piece in x.unbind(1):
            yield piece * 2

    def forward(self, x):
        return torch.stack([piece + 1 for piece in self.pieces(x)], dim=1)


class Tries(nn.Module):
    def forward(self, x):
        try:
            y = x @ x
        except RuntimeError:
            y = x @ x.transpose(-1, -2)
        finally:
            z = x + 1
        with torch.autocast("cpu", enabled=False) as context:
            w = y.sum() + z.sum()
        assert context is not None
        return w


class Random(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        noise = torch.rand_like(x)
        return self.drop(x) + noise


def rand(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


CASES = {
    "stack": (Stack, lambda: (rand(2, 3, 8),)),
    "values": (Values, lambda: (rand(2, 4),)),
    "alternating": (Alternating, lambda: (rand(2, 3, 4),)),
    "depth": (Depth, lambda: (rand(2, 3, 4),)),
    "shared": (Shared, lambda: (rand(2, 4),)),
    "recursive": (Recursive, lambda: (rand(2, 4),)),
    "answers": (Answers, lambda: ({"x": rand(2, 4), "mask": None},)),
    "in place": (InPlace, lambda: (rand(2, 4),)),
    "closures": (Closures, lambda: (rand(2, 4),)),
    "generators": (Generators, lambda: (rand(2, 4),)),
    "tries": (Tries, lambda: (rand(2, 4),)),
    "random": (Random, lambda: (rand(2, 4),)),
    "gru": (lambda: nn.GRU(4, 5, batch_first=True), lambda: (rand(2, 3, 4),)),
    "attention": (
        lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        lambda: (rand(2, 3, 8), rand(2, 3, 8), rand(2, 3, 8)),
    ),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: (rand(2, 3, 8),),
    ),
}
