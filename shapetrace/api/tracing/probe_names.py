"""Names for a run's axes: probes before it, or, where it fails, as far as it gets."""

from __future__ import annotations

import io
import logging
import os
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

    from shapetrace.capture.source.discover import Wanted
    from shapetrace.capture.target.subject import Arguments, Subject
    from shapetrace.naming.name_trace import Probing


def probed(
    subject: Subject, progress: Callable[[str], None] = lambda _: None
) -> tuple[Probing, Wanted]:
    """Probe a subject; one that raises on every weightless run is probed up to that point.

    What the model prints is dropped: it prints it again in the real run.

    Args:
        subject: What to run.
        progress: Called with the name of each size before it is probed.

    Returns:
        What was seen, and the functions that the run enters.
    """
    from shapetrace.capture.probing.probe import probe  # noqa: PLC0415
    from shapetrace.capture.source.live_functions import searched_once  # noqa: PLC0415 - these need torch

    with redirect_stdout(io.StringIO()), no_complaints(), searched_once():
        probing, wanted = probe(replace(subject, run=run_tamely), progress)
        if probing.base is not None:
            return probing, wanted
        partly, entered = probe(replace(subject, run=_as_far_as_it_goes), progress)
        return (partly, entered) if partly.base is not None else (probing, wanted)


@contextmanager
def no_complaints() -> Iterator[None]:
    """A probe that fails is no news, nor is what a model says of sizes that nobody asked for."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def run_tamely(model: nn.Module, given: Arguments) -> Any:
    """Call a model that may leave the process or split it in two.

    Raises:
        RuntimeError: In place of the `SystemExit` of a model that calls `sys.exit`.
    """
    process = os.getpid()
    try:
        return model(*given[0], **given[1])
    except SystemExit as error:
        raise RuntimeError(f"the model calls sys.exit({error.code!r})") from error
    finally:
        if os.getpid() != process:
            os._exit(0)  # a child that the model forked: only the parent goes on


def _as_far_as_it_goes(model: nn.Module, given: Arguments) -> Any:
    with suppress(Exception):
        return run_tamely(model, given)
    return None
