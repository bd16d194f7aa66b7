"""What the naming probes of a model saw, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shapetrace.records.trace import Scope, Shape, Site, TensorRecord

TensorKey = tuple[str, str, int, str, str, int]
"""Path of the call, file, line, name, element, and which time round."""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What one run of a model saw.

    Attributes:
        sizes: The sizes it ran at, inputs' and integers'.
        shapes: Every recorded shape.
        parameters: Every parameter's and buffer's shape, by path.
        attributes: The integers that each module of the user's holds, by path and name.
        config: The integers of the configuration that the model carries.
    """

    sizes: Mapping[str, int]
    shapes: Mapping[TensorKey, Shape]
    parameters: Mapping[str, Shape]
    attributes: Mapping[str, Mapping[str, int]]
    config: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Probing:
    """All that the probes of a model saw.

    Attributes:
        base: The run at the sizes of the real run; None when no probe could run.
        moved: By name, the runs with that size changed.
        joint: Runs with many of them changed, each larger or smaller.
        holdouts: Such runs at yet other sizes, that no name is found from; made where the
            others refuted a name.
        irrelevant: Names that moved nothing.
        inputs: The names of the inputs' dims, and whether each was guessed.
        tied: By name, the names that were changed with it, because none of them runs alone.
        apart: By name of axes that run only together, each of them moved alone, in runs that
            reach as far as the model lets them.
        given: Sizes that the user named and no input has: the model's own.
        unnamed: By place (``x[0]``), the input axes that were given as a number alone.
        equals: For records of layers that were left out of the runs, their equals in others.
        equal_parameters: The same of parameters and buffers.
        notes: What could not be probed, and why.
    """

    base: Observation | None
    moved: dict[str, list[Observation]] = field(default_factory=dict)
    joint: list[Observation] = field(default_factory=list)
    holdouts: list[Observation] = field(default_factory=list)
    irrelevant: set[str] = field(default_factory=set)
    inputs: dict[str, bool] = field(default_factory=dict)
    tied: dict[str, tuple[str, ...]] = field(default_factory=dict)
    apart: dict[str, dict[str, list[Observation]]] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    unnamed: dict[str, int] = field(default_factory=dict)
    equals: dict[TensorKey, TensorKey] = field(default_factory=dict)
    equal_parameters: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def in_first_layer(path: str) -> str:
    """The path of the same thing in the first of equal layers: ``blocks.7.wq`` to ``blocks.0.wq``."""
    return re.sub(r"(?<![\w])\d+(?![\w])", "0", path)


def keyed(
    scopes: Sequence[Scope], sites: Sequence[Site], tensors: Sequence[TensorRecord]
) -> Iterator[tuple[TensorKey, TensorRecord]]:
    """Each record with the key under which another run of the same model has it."""
    times: dict[tuple[str, str, int, str, str], int] = {}
    for record in tensors:
        site = sites[record.site]
        place = (scopes[record.scope].path, site.file, site.line, site.name, record.element)
        times[place] = times.get(place, -1) + 1
        yield (*place, times[place]), record
