"""Names for a run's axes: probes before it, or, where it fails, as far as it gets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import nn

from shapetrace.capture.probing.probe import probe
from shapetrace.capture.source.discover import Wanted
from shapetrace.capture.source.live_functions import searched_once
from shapetrace.capture.target.calling import call_model
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.target.unheard import unheard
from shapetrace.naming.name_trace import Probing


def probed(
    subject: Subject, progress: Callable[[str], None] = lambda _: None
) -> tuple[Probing, Wanted]:
    """Probe a subject; one that raises on every weightless run is probed up to that point.

    What the model prints or warns of is dropped: it does so again in the real run.

    Args:
        subject: What to run.
        progress: Called with what is going on, before each size that is probed.

    Returns:
        What was seen, and the functions that the run enters.
    """

    def tell(name: str) -> None:
        progress(f"naming: {name} at another size")

    with unheard(), searched_once():
        probing, wanted = probe(subject, tell)
        if probing.base is not None:
            return probing, wanted
        partly, entered = probe(replace(subject, run=_as_far_as_it_goes), tell)
        return (partly, entered) if partly.base is not None else (probing, wanted)


def _as_far_as_it_goes(model: nn.Module, inputs: CallInputs) -> Any:
    with suppress(Exception):
        return call_model(model, inputs)
    return None
