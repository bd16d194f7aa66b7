"""What a training step holds in memory, by kind, and what the backward pass needs kept."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shapetrace.cost.memory import Peak, distinct_parameters, peak

if TYPE_CHECKING:
    from shapetrace.records.trace import StorageKind, Trace

BEYOND: tuple[StorageKind, ...] = ("activation", "gradient", "state")
"""Kinds of memory that a step needs beside the parameters and the input."""


@dataclass(frozen=True, slots=True)
class Saved:
    """One block of memory that is kept for the backward pass.

    Attributes:
        path: The call that made it.
        name: The tensor in it that was named first; empty where none was.
        operator: What made it: ``aten._softmax.default``.
        nbytes: Its size.
    """

    path: str
    name: str
    operator: str
    nbytes: int

    @property
    def label(self) -> str:
        """Its name; of a block without one the operator that made it: ``(_softmax)``."""
        return self.name or f"({self.operator.split('.')[1]})"


@dataclass(frozen=True, slots=True)
class SavedBy:
    """What one layer keeps for the backward pass.

    Attributes:
        path: The layer: ``blocks.0``, ``head``; empty for what no layer made.
        nbytes: In all.
        blocks: Each block of memory, largest first.
    """

    path: str
    nbytes: int
    blocks: tuple[Saved, ...]


@dataclass(frozen=True, slots=True)
class Training:
    """A training step's memory.

    Attributes:
        parameter_bytes: Of the parameters.
        gradient_bytes: Of all parameters' gradients.
        state_bytes: Of what the optimizer keeps; 0 before the first update.
        saved: What is kept when the backward pass begins, by layer, largest first.
        peak: The most memory at once beyond the parameters, in a step that finds the
            optimizer's state there: any but the first.
        first_peak: The same in this step, where the state is made at its end.
    """

    parameter_bytes: int
    gradient_bytes: int
    state_bytes: int
    saved: tuple[SavedBy, ...]
    peak: Peak
    first_peak: Peak

    @property
    def saved_bytes(self) -> int:
        """What is kept when the backward pass begins."""
        return sum(layer.nbytes for layer in self.saved)


def training_of(trace: Trace) -> Training | None:
    """A training step's memory; None where no backward pass ran."""
    first = next((op.at for op in trace.ops if op.phase == "backward"), None)
    if first is None:
        return None
    return Training(
        parameter_bytes=sum(record.nbytes for record in distinct_parameters(trace)),
        gradient_bytes=_sum(trace, "gradient"),
        state_bytes=_sum(trace, "state"),
        saved=_saved(trace, first),
        peak=peak(_with_state(trace), BEYOND),
        first_peak=peak(trace, BEYOND),
    )


def _with_state(trace: Trace) -> Trace:
    """The same step, with the optimizer's state there from its beginning."""
    storages = tuple(
        replace(storage, born=0) if storage.kind == "state" else storage
        for storage in trace.storages
    )
    return replace(trace, storages=storages)


def _sum(trace: Trace, kind: str) -> int:
    return sum(storage.nbytes for storage in trace.storages if storage.kind == kind)


def _saved(trace: Trace, first: int) -> tuple[SavedBy, ...]:
    """Activations that are alive when the backward pass begins: nothing else needs them."""
    names: dict[int, str] = {}
    for record in trace.tensors:
        if record.storage is not None:
            names.setdefault(record.storage, trace.sites[record.site].name)
    clocks = [op.at for op in trace.ops]
    layers: dict[str, list[Saved]] = {}
    for number, storage in enumerate(trace.storages):
        alive = storage.born < first and (storage.died is None or storage.died > first)
        if storage.kind == "activation" and alive and storage.born:
            op = trace.ops[bisect_left(clocks, storage.born)]
            path = trace.scopes[op.scope].path
            saved = Saved(path, names.get(number, ""), op.name, storage.nbytes)
            layers.setdefault(layer_of(path), []).append(saved)
    found = [
        SavedBy(path, sum(b.nbytes for b in blocks), tuple(sorted(blocks, key=lambda b: -b.nbytes)))
        for path, blocks in layers.items()
    ]
    return tuple(sorted(found, key=lambda layer: -layer.nbytes))


def layer_of(path: str) -> str:
    """The layer that a call lies in: up to the first number, else its first part."""
    numbered = re.match(r"(.*?\.\d+)(?=\.|$)", path)
    return numbered.group(1) if numbered else path.partition(".")[0].removesuffix("()")
