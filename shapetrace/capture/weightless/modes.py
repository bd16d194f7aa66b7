"""Ways to run a model only to see its sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from shapetrace.capture.values import members
from shapetrace.capture.weightless.memo import Remembering

Weightless = Callable[[], contextlib.AbstractContextManager[Any]]
"""Makes the context in which a model is built and run."""

_MOST_ELEMENTS = 50_000_000
"""Weights above which a model is not built in full only to name its dimensions."""


def meta() -> contextlib.AbstractContextManager[Any]:
    """Tensors on the meta device."""
    return torch.device("meta")


def remembered(known: dict[Any, Any]) -> Weightless:
    """Tensors on the meta device, each operator's result worked out once.

    Args:
        known: What was worked out so far.
    """

    @contextlib.contextmanager
    def meta_remembered() -> Iterator[None]:
        with torch.device("meta"), Remembering(known):
            yield

    return meta_remembered


def fake() -> contextlib.AbstractContextManager[Any]:
    """Tensors without memory that keep their device, so the same kernels are chosen."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def real() -> contextlib.AbstractContextManager[Any]:
    """Real tensors, for a model whose course hangs on values."""
    return contextlib.nullcontext()


def makes_real_tensors() -> bool:
    """Whether a tensor made now would hold values."""
    made = torch.empty(0)
    return type(made) is torch.Tensor and made.device.type != "meta"


def is_small(build: Callable[[], nn.Module], most: int = _MOST_ELEMENTS) -> bool:
    """Whether a model may well be built with real weights; one that can't be told is."""
    try:
        with meta():
            model = build()
    except Exception:  # noqa: BLE001 - a constructor that looks at values
        return True
    return sum(parameter.numel() for parameter in members.parameters(model)) <= most
