"""The random generators that a model may draw from, and how each is left as it was."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

_NUMPY_SEEDS = 1 << 32


@contextmanager
def same_random_state(seed: int | None = None) -> Iterator[None]:
    """Leave the random generators of torch, on every device in use, Python and NumPy as they were.

    NumPy, and a device that nothing has used yet, are not imported or set up for it.

    Args:
        seed: Of all of them inside the block; None to let them go on.
    """
    restore = [*_generators()]
    try:
        if seed is not None:
            _seed(seed)
        yield
    finally:
        for put_back in restore:
            put_back()


def _generators() -> Iterator[Callable[[], object]]:
    """For each generator in use, what gives it its present state again."""
    for generator in _of_torch():
        yield partial(generator.set_state, generator.get_state())
    own = random.getstate()
    yield lambda: random.setstate(own)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        known = numpy.get_state()
        yield lambda: numpy.set_state(known)
    if torch.backends.mps.is_available():
        apple = torch.mps.get_rng_state()
        yield lambda: torch.mps.set_rng_state(apple)


def _of_torch() -> Iterator[torch.Generator]:
    """The generators themselves: their states pass by any mode that makes tensors fake."""
    yield torch.default_generator
    if torch.cuda.is_initialized():
        yield from torch.cuda.default_generators
    if torch.xpu.is_initialized():
        yield from torch.xpu.default_generators


def _seed(seed: int) -> None:
    # torch.manual_seed would also seed, later on, devices that are not in use yet.
    for generator in _of_torch():
        generator.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(seed % _NUMPY_SEEDS)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)
