"""One run of a subject at given sizes, without weights where that can be, and what it saw."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from textwrap import shorten

import torch
from torch import nn

from shapetrace.capture.probing.choose_sizes import labels
from shapetrace.capture.probing.model_sizes import attributes, configured_sizes, parameter_shapes
from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.recorder.assemble import assemble
from shapetrace.capture.recorder.calls import module_names
from shapetrace.capture.recorder.hooks import activate
from shapetrace.capture.recorder.recorder import Recorder
from shapetrace.capture.recorder.scripted import Outside, scripted_roots
from shapetrace.capture.source.discover import Wanted, entered, joined, own_files
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.weightless.modes import (
    Weightless,
    fake,
    is_small,
    meta,
    real,
    remembered,
)
from shapetrace.naming.name_trace import Observation, keyed

_LONGEST = 120
"""Of what is quoted of an error in a note."""
_MOST_REAL = 100_000
"""Weights of a model that is really run at many times its sizes."""


class ProbeRuns:
    """Makes and runs a subject at other sizes.

    Attributes:
        sizes: Every size that can be changed, as in the real run.
        labels: What the model's integers are called in expressions.
        wanted: The functions that a run enters, once `enter` has found out.
        weightless: The way to run that works.
        notes: What could not be done.
        fewer: Numbers of layers that runs have instead of the model's own.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.sizes = {**subject.integers, **subject.dims, **subject.loose}
        self.labels = labels([*subject.integers], [*subject.dims])
        self.wanted: Wanted = {}
        self.weightless: Weightless = meta
        self.notes: list[str] = []
        self.fewer: dict[str, int] = {}
        self._recorder = Recorder({}, operators=False)
        self._watched: Wanted = {}

    def label(self, name: str) -> str:
        """What a size is called in expressions."""
        return self.labels.get(name, name)

    def enter(self) -> bool:
        """Find the first way to run that works, and the functions that the run enters."""
        problems = ["its packed weights need values"] if self.subject.packed else []
        packed = self.subject.packed
        for weightless in (real,) if packed else (remembered({}), meta, fake, real):
            self.weightless = weightless
            try:
                if weightless is real and not self._may_be_real():
                    continue
                model = self._run({}, watch=entered)
            except Exception as error:  # noqa: BLE001 - any failure of the model rules this way out
                if weightless.__name__ == "meta_remembered":
                    continue  # what it is to blame for is told by the next way
                line = shorten(str(error).partition("\n")[0], _LONGEST, placeholder=" ...")
                problems.append(f"{weightless.__name__}: {type(error).__name__}: {line}")
            else:
                self.wanted = joined(self._watched, own_files(model))
                if weightless is real:
                    self.notes.append(f"names come from real runs ({'; '.join(problems)})")
                return True
        self.notes.append("dimensions were not probed (" + "; ".join(problems) + ")")
        return False

    def _may_be_real(self) -> bool:
        if self.subject.packed:  # without values it can't be built to be measured
            return True
        return is_small(lambda: self.subject.build(self.subject.integers))

    def may_grow(self) -> bool:
        """Whether a run at many times the sizes is harmless: weightless ones need no memory."""
        return self.weightless is not real or is_small(
            lambda: self.subject.build(self.subject.integers), _MOST_REAL
        )

    def observe(
        self, changes: Mapping[str, int], *, partly: bool = False, whole: bool = False
    ) -> Observation | None:
        """What a run with some sizes changed saw; None when it fails.

        Args:
            changes: Other sizes, by name.
            partly: Whether a run that fails counts as far as it got.
            whole: Whether the model has all its layers.
        """
        fewer = {} if whole else self.fewer
        try:
            model = self._run({**fewer, **changes}, partly=partly)
        except Exception:  # noqa: BLE001 - a size that the model refuses is no evidence
            return None
        names, _ = module_names(model)
        blocks = self._recorder.storages.blocks
        tables = assemble(self._recorder.events, blocks, names, "", whole=True)
        sizes = {**self.sizes, **changes}
        return Observation(
            {self.label(name): size for name, size in sizes.items()},
            {
                key: record.shape
                for key, record in keyed(tables.scopes, tables.sites, tables.tensors)
            },
            parameter_shapes(model),
            attributes(model),
            configured_sizes(model),
        )

    def _run(
        self,
        changes: Mapping[str, int],
        watch: Callable[[], contextlib.AbstractContextManager[Wanted]] | None = None,
        *,
        partly: bool = False,
    ) -> nn.Module:
        """Build and run; events are recorded, or, with `watch`, the functions entered noted.

        With `partly`, a run that fails counts as far as it got.
        """
        subject = self.subject
        changes = {**_tied(subject, changes), **changes}
        integers = {name: changes.get(name, size) for name, size in subject.integers.items()}
        axes = {**subject.dims, **subject.loose}
        dims = {name: changes.get(name, size) for name, size in axes.items()}
        eager = torch.compiler.set_stance("force_eager")  # compiled code shows nothing
        with eager, same_random_state(), self.weightless(), torch.no_grad():
            model = subject.build(integers)
            given = subject.arguments(dims, integers)
            if watch is not None:
                with watch() as self._watched:
                    subject.run(model, given)
            else:
                self._recorder = Recorder(module_names(model)[1], operators=False)
                activate(self._recorder)
                outside = Outside([module for _, module in scripted_roots(model)])
                outside.begin()
                try:
                    subject.run(model, given)
                except Exception:
                    if not partly:
                        raise
                finally:
                    outside.end()
                    activate(None)
                    self._recorder.close()
        return model


def _tied(subject: Subject, changes: Mapping[str, int]) -> dict[str, int]:
    tied: dict[str, int] = {}
    for name, size in changes.items():
        for other in subject.tied.get(name, ()):
            tied[other] = subject.integers[other] * size // subject.integers[name]
    return tied
