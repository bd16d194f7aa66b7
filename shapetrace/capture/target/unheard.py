"""Runs that nobody asked for, in silence."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import torch


@contextmanager
def unheard() -> Iterator[None]:
    """What a model prints, logs or warns of at sizes that nobody asked for is no news.

    A warning that torch gives once in a process is not used up: the real run gives it.
    """
    logged, always = logging.root.manager.disable, torch.is_warn_always_enabled()
    logging.disable(logging.CRITICAL)
    torch.set_warn_always(True)
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_warn_always(always)
        logging.disable(logged)
