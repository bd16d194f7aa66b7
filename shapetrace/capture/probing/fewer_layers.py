"""Probing a deep model with two of its equal layers, where they are known to be equal.

That layers are equal shows in two runs of the whole model: at its own sizes, and with all of
them changed, every record of every layer has the shape of the same record in a layer that
is probed. Two layers whose sizes merely coincide are told apart by the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from shapetrace.capture.probing.probe_runs import ProbeRuns
from shapetrace.naming.observations import Observation, TensorKey, in_first_layer
from shapetrace.records.trace import Shape

_CLUES = ("layer", "depth", "block")
_DEEP = 3
_KEPT = 2

_Place = TypeVar("_Place", TensorKey, str)


@dataclass(frozen=True, slots=True)
class Shallow:
    """A model with fewer layers, and what stands for each thing in the layers left out.

    Attributes:
        base: Its run at the sizes of the real one.
        records: For each record that it lacks, the one that is equal.
        parameters: The same of parameters and buffers.
    """

    base: Observation
    records: Mapping[TensorKey, TensorKey]
    parameters: Mapping[str, str]

    def holds(self, whole: Observation) -> bool:
        """Whether things that stand for others are their equals in another run too."""
        return _alike(self.records, whole.shapes) and _alike(self.parameters, whole.parameters)


def _alike(names: Mapping[_Place, _Place], shapes: Mapping[_Place, Shape]) -> bool:
    return all(a in shapes and shapes[a] == shapes.get(b) for a, b in names.items())


def shallow(runs: ProbeRuns, whole: Observation) -> Shallow | None:
    """Leave out layers from all runs that follow, where the others can stand for them.

    Args:
        runs: Makes the runs; its `fewer` is filled.
        whole: The whole model's run at its own sizes.

    Returns:
        What stands for what; None where no layers can be left out.
    """
    found = None
    for name, size in runs.subject.integers.items():
        if size >= _DEEP and any(clue in name.lower() for clue in _CLUES):
            runs.fewer[name] = _KEPT
            seen = runs.observe({})
            equal = _equal(seen, whole) if seen is not None else None
            if equal is None:
                del runs.fewer[name]
            else:
                found = equal
    return found


def _equal(few: Observation, whole: Observation) -> Shallow | None:
    if len(few.shapes) >= len(whole.shapes):
        return None
    records = _standing(few.shapes, whole.shapes, _round)
    parameters = _standing(few.parameters, whole.parameters, _path)
    if records is None or parameters is None:
        return None
    return Shallow(few, records, parameters)


def _round(key: TensorKey) -> Iterator[object]:
    """What a record has in common with those of other layers; then, with other times round."""
    same = (in_first_layer(key[0]), *key[1:5])
    yield (*same, key[5])
    yield same


def _path(path: str) -> Iterator[object]:
    yield in_first_layer(path)


def _standing(
    few: Mapping[_Place, Shape],
    whole: Mapping[_Place, Shape],
    likes: Callable[[_Place], Iterator[object]],
) -> dict[_Place, _Place] | None:
    """For each thing that only the whole has, the last alike that both have, of its shape."""
    if any(whole.get(name) != shape for name, shape in few.items()):
        return None
    last = {like: name for name in few for like in likes(name)}
    found: dict[_Place, _Place] = {}
    for name, shape in whole.items():
        if name not in few:
            other = next((last[like] for like in likes(name) if like in last), None)
            if other is None or few[other] != shape:
                return None
            found[name] = other
    return found
