"""The model built at other sizes and run without weights, for what its annotations say there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import nn

from shapetrace.capture.probing.choose_sizes import labels
from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.recording import record
from shapetrace.capture.source.discover import Wanted
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.values import members
from shapetrace.capture.weightless.modes import Weightless, fake, meta
from shapetrace.naming.name_trace import Probing
from shapetrace.records.trace import Trace


def elsewhere(
    subject: Subject, probing: Probing, wanted: Wanted
) -> Iterator[tuple[str, int, Trace]]:
    """One weightless run for each size that the model is built from and that moves a shape.

    Args:
        subject: What to run.
        probing: What probes saw of it: the sizes that it accepts.
        wanted: The functions to look into.

    Yields:
        The name, its other size, and what was recorded; nothing for a size that fails.
    """
    for name, label in labels([*subject.integers], [*subject.dims]).items():
        if label in probing.moved and name not in subject.dims:
            size = probing.moved[label][0].sizes[label]
            trace = _traced(subject, {**subject.integers, name: size}, wanted)
            if trace is not None:
                yield label, size, trace


def _traced(subject: Subject, integers: Mapping[str, int], wanted: Wanted) -> Trace | None:
    for weightless in () if subject.packed else (meta, fake):
        try:
            return _attempt(subject, integers, wanted, weightless)
        except Exception:  # noqa: BLE001, S112 - a size that the model refuses tells nothing
            continue
    return None


def _attempt(
    subject: Subject, integers: Mapping[str, int], wanted: Wanted, mode: Weightless
) -> Trace:
    with same_random_state(), torch.no_grad():
        with mode():
            model = subject.build(integers)
            given = subject.arguments(subject.dims, integers)
            recording = record(model, wanted=wanted, operators=False)
            with recording:
                subject.run(model, given)
        return recording.trace


def owned_sizes(model: nn.Module) -> dict[str, dict[str, int]]:
    """The whole numbers that a model's own modules hold, by path and name."""
    return {
        path: {
            name: value
            for name, value in vars(module).items()
            if type(value) is int and not name.startswith("_")
        }
        for path, module in members.named_modules(model, remove_duplicate=False)
        if not type(module).__module__.startswith("torch.nn")
    }
