"""Models whose layers look equal and do not do the same work; each by another way to know."""

from __future__ import annotations

import dataclasses
import functools

import torch
from torch import Tensor, nn

from tests.capture.models_under_test import rand


class Box:
    keys: Tensor


class Boxed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x, box):
        return (self.inner(x) @ box.keys).sum(-1, keepdim=True) * x


class ABox(nn.Module):
    """An argument that is filled anew for each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Boxed() for _ in range(4))

    def forward(self, x):
        box = Box()
        for n, layer in enumerate(self.layers):
            box.keys = torch.ones(4, n + 1)
            x = layer(x, box)
        return x


@dataclasses.dataclass
class Settings:
    flags: dict[str, bool]
    power: float = 1.0


class Layer(nn.Module):
    """A layer that asks `decide` whether to multiply once more."""

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.seen: list[int] = []
        self.settings = Settings({"square": False})
        self.number = number
        self.scale = 1.0
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        y = self.drop(self.inner(x))
        if self.decide(x):
            y = y @ y.transpose(-1, -2) @ y
        return y * self.scale

    def decide(self, x):
        return False


class AList(Layer):
    met: list[int]

    def decide(self, x):
        self.met.append(self.number)
        return len(self.met) % 3 == 0


class AClassAttribute(Layer):
    count = 0

    def decide(self, x):
        AClassAttribute.count += 1
        return AClassAttribute.count % 2 == 0


CALLS = {"count": 0}


class AGlobal(Layer):
    def decide(self, x):
        CALLS["count"] += 1
        return CALLS["count"] % 2 == 0


class ADefault(Layer):
    def decide(self, x, seen=[]):  # noqa: B006 - what this layer is about
        seen.append(1)
        return len(seen) % 3 == 0


class AFlagInADict(Layer):
    def decide(self, x):
        return self.settings.flags["square"]


class ANumber(Layer):
    def decide(self, x):
        return self.number == 2


class AnItem(Layer):
    def decide(self, x):
        return x.sum().item() > 0


class AnArray(Layer):
    """Reads values without an operator that says so."""

    def decide(self, x):
        return float(x.detach().numpy().sum()) > 0


class ATolist(Layer):
    def decide(self, x):
        return x.tolist()[0][0] > 0


class AnIdentity(Layer):
    first: nn.Module

    def decide(self, x):
        return self is not self.first


class Stacked(nn.Module):
    def __init__(self, layers) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def listed():
    layers = [AList() for _ in range(4)]
    met: list[int] = []
    for layer in layers:
        layer.met = met
    return Stacked(layers)


def counted(kind):
    AClassAttribute.count = CALLS["count"] = 0
    ADefault.decide.__defaults__[0].clear()
    return Stacked(kind() for _ in range(4))


def flagged():
    model = counted(AFlagInADict)
    model.layers[2].settings = Settings({"square": True})
    return model


def numbered():
    return Stacked(ANumber(number) for number in range(4))


def closed_over():
    calls = []

    def decide(x):
        calls.append(1)
        return len(calls) == 3

    model = Stacked(Layer() for _ in range(4))
    for layer in model.layers:
        layer.decide = decide
    return model


def bound():
    model = Stacked(Layer() for _ in range(4))
    for number, layer in enumerate(model.layers):
        layer.decide = functools.partial(lambda wanted, _: wanted, number == 1)
    return model


def hooked():
    model = Stacked(Layer() for _ in range(4))
    model.layers[2].inner.register_forward_hook(lambda _m, _a, y: y @ y.transpose(-1, -2) @ y)
    return model


def dropping():
    model = Stacked(Layer() for _ in range(4))
    model.layers[2].drop.p = 0.5
    return model


class Cached(nn.Module):
    """Attention over keys that are kept: one more at each step."""

    def __init__(self, kept) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.kept = kept

    def forward(self, x):
        self.kept.append(self.inner(x))
        keys = torch.cat(self.kept)
        return (x @ keys.T).softmax(-1) @ keys


def caching():
    kept: list[Tensor] = []
    return Stacked(Cached(kept) for _ in range(4))


def first_known():
    layers = [AnIdentity() for _ in range(3)]
    AnIdentity.first = layers[0]
    return Stacked(layers)


def _both_signs():
    return (rand(3, 4) * torch.tensor([[-1.0], [1.0], [2.0]]),)


DIFFERENT = {
    "a box": (ABox, lambda: (rand(3, 4),)),
    **{
        kind.__name__: (functools.partial(counted, kind), _both_signs)
        for kind in (AClassAttribute, AGlobal, ADefault, AnItem, AnArray, ATolist)
    },
    **{
        build.__name__: (build, _both_signs)
        for build in (
            listed,
            flagged,
            numbered,
            closed_over,
            bound,
            hooked,
            dropping,
            caching,
            first_known,
        )
    },
}
"""By name: how to build the model (in its first state), and its inputs."""
