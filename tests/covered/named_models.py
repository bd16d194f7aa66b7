"""Models whose sizes coincide, or do not divide, or hang on values."""

# ruff: noqa: RET504 - the variables are what is looked at

from __future__ import annotations

import torch
from torch import nn


class Heads(nn.Module):
    """Attention whose every size can be made to equal another."""

    def __init__(self, d_model: int = 16, h: int = 2, d_k: int = 8, bias: bool = False) -> None:
        super().__init__()
        self.h, self.d_k = h, d_k
        self.qkv = nn.Linear(d_model, 3 * h * d_k, bias=bias)
        self.out = nn.Linear(h * d_k, d_model, bias=bias)

    def forward(self, x):
        B, n, _ = x.shape
        qkv = self.qkv(x)
        q, k, v = qkv.view(B, n, 3, self.h, self.d_k).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2)
        concat = mixed.reshape(B, n, self.h * self.d_k)
        return self.out(concat)


class Split(nn.Module):
    """Heads must divide the width: doubling `h` alone is refused."""

    def __init__(self, width: int = 4, h: int = 4) -> None:
        super().__init__()
        if width % h:
            raise ValueError("h must divide width")
        self.h = h
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        parts = self.inner(x).unflatten(-1, (self.h, -1))
        return parts


class ByValue(nn.Module):
    """A branch and a size that hang on values."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.inner = nn.Linear(4, width)

    def forward(self, x, lengths):
        if x.abs().sum().item() > 0:
            x = self.inner(x)
        longest = int(lengths.max())
        kept = x[:, :longest]
        return x, kept


class Convolved(nn.Module):
    def __init__(self, channels: int = 5) -> None:
        super().__init__()
        self.strided = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        strided = self.strided(x)
        pooled = self.pool(x)
        plain = torch.cat([x, x[..., :1]], dim=-1)
        return strided, pooled, plain


class Patches(nn.Module):
    """Only runs on images of the size that it was made for."""

    def __init__(self, image: int = 32, patch: int = 8, channels: int = 3, width: int = 10) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, stride=patch)
        self.places = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.cls = nn.Parameter(torch.zeros(1, 1, width))

    def forward(self, x):
        patches = self.proj(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), patches], dim=1)
        return tokens + self.places


class Fixed(nn.Module):
    """An instance of it tells its sizes only by its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = 7
        self.inner = nn.Linear(4, 7)

    def forward(self, x):
        y = self.inner(x)
        return y
