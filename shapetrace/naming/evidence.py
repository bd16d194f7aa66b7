"""What the runs of a model that saw one thing say of its axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shapetrace.dims import evaluate, names_in
from shapetrace.dims.expressions import ExpressionError
from shapetrace.naming.observations import Observation, Probing, TensorKey
from shapetrace.records.trace import Shape

AnyKey = TypeVar("AnyKey", TensorKey, str)
JOINT = ""
"""Stands for a name in runs with many sizes changed."""
HOLDOUT = "="
"""The same in runs that no name is found from."""

ShapeRun = tuple[str, Observation, Shape]
"""A probe that saw the same thing: the name that it changed, all it saw, the thing's shape."""
AxisRun = tuple[str, Observation, int]
"""The same of one axis."""


@dataclass(frozen=True, slots=True)
class Sightings:
    """The runs that saw a thing; `apart`, with axes that run only together moved alone."""

    together: list[ShapeRun]
    apart: list[ShapeRun]

    def axis(self, axis: int) -> tuple[tuple[AxisRun, ...], tuple[AxisRun, ...]]:
        """What each kind of runs saw of one axis."""
        return _of_axis(self.together, axis), _of_axis(self.apart, axis)


def _of_axis(runs: Sequence[ShapeRun], axis: int) -> tuple[AxisRun, ...]:
    return tuple((name, run, shape[axis]) for name, run, shape in runs)


def seen_by(
    probing: Probing,
    key: AnyKey,
    shape: Shape,
    table: Callable[[Observation], Mapping[AnyKey, Shape]],
) -> Sightings | None:
    """The probes that saw the thing; None when the first run saw it otherwise or not."""
    base = probing.base
    if base is None or table(base).get(key) != shape:
        return None

    def found(name: str, runs: Sequence[Observation]) -> list[ShapeRun]:
        shapes = ((run, table(run).get(key)) for run in runs)
        return [(name, run, s) for run, s in shapes if s is not None and len(s) == len(shape)]

    moved = {name: found(name, runs) for name, runs in probing.moved.items()}
    many = found(JOINT, probing.joint) + found(HOLDOUT, probing.holdouts)
    together = [run for runs in moved.values() for run in runs] + many
    apart: list[ShapeRun] = []
    for name, members in probing.apart.items():
        alone = [found(member, runs) for member, runs in members.items()]
        if all(alone):
            others = [run for run in together if run[0] != name]
            apart = [run for runs in alone for run in runs] + others
    return Sightings(together, apart)


def holds_in_run(text: str, run: AxisRun) -> bool:
    """Whether an expression gives what a run saw of an axis."""
    _, seen, size = run
    try:
        return evaluate(text, seen.sizes) == size
    except ExpressionError:
        return False


def spread_squares(text: str, one: str, other: str) -> str:
    """An expression with every square of the one axis shared between the two: ``H*W``."""
    alone = re.compile(rf"\b{one}\b")

    def shared(match: re.Match[str]) -> str:
        part = match[1]
        if names_in(part).count(one) == 0 or other in names_in(part):
            return match[0]
        return f"({part})*({alone.sub(other, part)})"

    text = re.sub(r"\(([^()]*)\)\*\*2", shared, text)
    return re.sub(rf"\b{one}\*{one}\b", f"{one}*{other}", text)
