"""Models and parts of torch that are odd in one way each."""

# ruff: noqa: RET504 - the variables are what is looked at

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.capture.models_under_test import rand


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class CustomAutograd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        y = Doubled.apply(self.inner(x))
        return y


class Spectral(nn.Module):
    def forward(self, x):
        spectrum = torch.fft.rfft(x, dim=-1)
        power = spectrum.abs() ** 2
        rotated = spectrum * torch.polar(torch.ones(1), torch.ones(1))
        back = torch.fft.irfft(rotated, n=x.shape[-1])
        return power, back, torch.view_as_real(spectrum)


class Sparse(nn.Module):
    def forward(self, x):
        adjacency = torch.eye(x.shape[0]).to_sparse()
        y = torch.sparse.mm(adjacency, x)
        return y, adjacency


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a prototype, as torch says
            ragged = torch.nested.nested_tensor([x[0, :2], x[1]])
        hidden = self.inner(ragged)
        return torch.nested.to_padded_tensor(hidden, 0.0)


class Quantized(nn.Module):
    def forward(self, x):
        q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
        return q.dequantize(), q.int_repr()


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def block(self, x):
        hidden = self.inner(x)
        return hidden.relu()

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


class Functional(nn.Module):
    """`functional_call` and `vmap` over several sets of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        weights = {name: p * 2 for name, p in self.inner.named_parameters()}
        y = torch.func.functional_call(self.inner, weights, (x,))
        stacked = {name: torch.stack([p, p + 1]) for name, p in self.inner.named_parameters()}

        def one(parameters):
            return torch.func.functional_call(self.inner, parameters, (x,))

        z = torch.func.vmap(one)(stacked)
        return y, z


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.inner(x)
        return y


def hooked():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
    model[0].register_forward_hook(lambda module, args, output: output + 1)
    return model


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated, and still met
            self.part = torch.jit.script(nn.Linear(4, 6))

    def forward(self, x):
        y = self.part(x)
        return y.relu()


class Compiled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.compile(nn.Linear(4, 6), backend="eager")

    def forward(self, x):
        y = self.part(x)
        return y.relu()


def noisy(function):
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Decorated(nn.Module):
    @noisy
    def forward(self, x):
        y = self.twice(x)
        return y

    @noisy
    def twice(self, x):
        doubled = x * 2
        return doubled


@dataclasses.dataclass(eq=False)
class DataclassModule(nn.Module):
    width: int = 6

    def __post_init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, self.width)

    def forward(self, x):
        y = self.inner(x)
        return y


class Labelled(Tensor):
    """A subclass that counts what it goes through."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Subclassed(nn.Module):
    def forward(self, x):
        y = x.as_subclass(Labelled)
        z = y + 1
        return z.as_subclass(Tensor)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        logits = self.head(x)
        return logits


class Nothing(nn.Module):
    """Returns None beside a tensor."""

    def forward(self, x):
        y = F.relu(x)
        return None, y, {"none": None}


class Gathering(nn.Module):
    def forward(self, x):
        index = torch.zeros(2, 3, dtype=torch.long)
        taken = x.gather(1, index)
        put = torch.zeros(2, 4).scatter_add(1, index, taken)
        both = torch.einsum("bi,bj->bij", x, put)
        return both


def mha():
    return nn.MultiheadAttention(8, 2, batch_first=True)


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def ids():
    return (torch.randint(10, (2, 5), generator=torch.Generator().manual_seed(0)),)


def one(*shape: int):
    return lambda: (rand(*shape),)
