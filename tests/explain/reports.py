"""What people reported as failing, as small models of our own, each with what is true of it.

The truth of each was decided by hand from torch's documentation and the sizes, before any
explanation of it was looked at.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Report:
    """A failing model and the truth.

    Attributes:
        kind: The model's class, made without arguments.
        inputs: What it is called with.
        axes: What may be said of axes: ``axis 1 of `x` is 7``. Any other is false.
        words: What a clash must contain as well where the axes alone do not say it.
        origins: What the whole explanation must name as origins of the sizes.
    """

    kind: type
    inputs: tuple
    axes: frozenset
    words: tuple
    origins: tuple


REPORTS: list[Report] = []


def reported(*inputs, axes=(), words=(), origins=()):
    def register(kind):
        said = frozenset(f"axis {axis} of `{text}` is {size}" for axis, text, size in axes)
        REPORTS.append(Report(kind, inputs, said, tuple(words), tuple(origins)))
        return kind

    return register


def f(*shape):
    return torch.zeros(shape)


def yes(*shape):
    return torch.ones(shape, dtype=torch.bool)


def ids(*shape, below):
    return torch.arange(torch.Size(shape).numel()).reshape(shape) % below
