"""One run of a model, for annotations: its trace without operators, and its structures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.recording import record
from shapetrace.capture.source.discover import Wanted, entered, joined, own_files
from shapetrace.capture.target.calling import call_model
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.values.code_run import CodeRun
from shapetrace.capture.values.structure_of import Observed, observing
from shapetrace.errors import ModelRaisedError
from shapetrace.records.structure import Structures
from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Running:
    """A model and the calls that it is to be watched in.

    Attributes:
        model: The model.
        subject: How to run it at other sizes, for its names.
        calls: What it is called with; the first as it was given.
        sizes: Of the inputs' named axes in each call.
        name: What the model is called.
        config: What it was made from.
    """

    model: nn.Module
    subject: Subject
    calls: Sequence[CallInputs]
    sizes: Sequence[dict[str, int]]
    name: str
    config: Mapping[str, Any] = field(default_factory=dict)


def entered_by(model: nn.Module, inputs: CallInputs) -> Wanted:
    """The functions that a call enters, and those beside them in the model's own files.

    Raises:
        ShapetraceError: If the model does not run.
    """
    try:
        with entered() as found:
            _run(model, inputs)
    except Exception as error:
        text = str(error).partition("\n")[0]
        raise ModelRaisedError(
            f"the model does not run on these inputs: {type(error).__name__}: {text} "
            "(`shapetrace trace` explains where)"
        ) from error
    return joined(found, own_files(model))


def watched(
    model: nn.Module,
    inputs: CallInputs,
    wanted: Wanted,
    own: Collection[str],
    *,
    name: str,
    config: Mapping[str, Any],
    code: CodeRun | None = None,
) -> tuple[Trace, Structures]:
    """Run a model once.

    Args:
        model: The model.
        inputs: What it is called with.
        wanted: The functions to look into.
        own: The files whose functions' kinds of values are noted.
        name: What the model is called.
        config: What it was made from.
        code: Where to note which code of these files runs.

    Returns:
        What was recorded, and what kind of value each parameter and return held.
    """
    observed = Observed()
    recording = record(model, wanted=wanted, operators=False, target=name, config=config)
    with recording, observing(own, observed), (code or CodeRun()).watching(own):
        _run(model, inputs)
    return recording.trace, observed.structures


def code_run_by(model: nn.Module, inputs: CallInputs, files: Collection[str]) -> CodeRun | None:
    """Which code of some files a call runs; None where the model does not run so."""
    code = CodeRun()
    try:
        with code.watching(files):
            _run(model, inputs)
    except Exception:  # noqa: BLE001 - what the model refuses tells nothing
        return None
    return code


def _run(model: nn.Module, inputs: CallInputs) -> Any:
    """Call a model, with the same random numbers each time."""
    with torch.no_grad(), same_random_state(0):
        return call_model(model, inputs)
