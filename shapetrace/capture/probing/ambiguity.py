"""Which sizes have to be measured once more, because several expressions still fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from shapetrace.naming.evidence import AxisRun, seen_by
from shapetrace.naming.expressions import Expressions
from shapetrace.naming.name_axis import name_axis
from shapetrace.naming.observations import Observation, Probing, TensorKey
from shapetrace.records.trace import Shape

ScaledPoint = tuple[str, Fraction, int]
"""A name, the factor on it, and what an axis came to."""


def unsettled(probing: Probing) -> list[str]:
    """Names of which another size would decide between expressions for some axis."""
    base = probing.base
    if base is None:
        return []
    curves = {(size, points) for size, points in _curves(base, probing) if points}
    found: dict[str, None] = {}
    for size, points in sorted(curves):
        probes: dict[str, dict[int | Fraction, int]] = {}
        for name, factor, other in points:
            probes.setdefault(name, {})[factor] = other
        found.update(dict.fromkeys(name_axis(size, probes, base.sizes).unsettled))
    return list(found)


def refuted(probing: Probing) -> bool:
    """Whether no expression was found for some axis, or runs with many sizes changed deny it."""
    base = probing.base
    if base is None or not probing.joint:
        return False
    expressions = Expressions(probing)
    for size, runs in {*_seen(probing, base)}:
        dim, moved = expressions.of_axis(size, runs)
        if moved and dim.evidence == "literal":
            return True
    return False


def _seen(probing: Probing, base: Observation) -> Iterator[tuple[int, tuple[AxisRun, ...]]]:
    """Every axis of the first run with all that other runs saw of it."""
    things = [seen_by(probing, key, shape, _shapes) for key, shape in base.shapes.items()]
    things += [seen_by(probing, path, s, _parameters) for path, s in base.parameters.items()]
    shapes = (*base.shapes.values(), *base.parameters.values())
    for seen, shape in zip(things, shapes, strict=True):
        if seen is not None:
            yield from ((size, seen.axis(axis)[0]) for axis, size in enumerate(shape))


def _shapes(run: Observation) -> Mapping[TensorKey, Shape]:
    return run.shapes


def _parameters(run: Observation) -> Mapping[str, Shape]:
    return run.parameters


def _curves(base: Observation, probing: Probing) -> Iterator[tuple[int, tuple[ScaledPoint, ...]]]:
    """Every axis of the first run with the points at which a name moved it."""
    runs = [
        (name, Fraction(run.sizes[name], base.sizes[name]), run.shapes)
        for name, seen in probing.moved.items()
        for run in seen
    ]
    for key, shape in base.shapes.items():
        others = [(name, factor, shapes.get(key)) for name, factor, shapes in runs]
        yield from _axes(shape, [(n, f, other) for n, f, other in others if other is not None])


def _axes(
    shape: Shape, others: list[tuple[str, Fraction, Shape]]
) -> Iterator[tuple[int, tuple[ScaledPoint, ...]]]:
    for axis, size in enumerate(shape):
        points = [(n, f, other[axis]) for n, f, other in others if len(other) == len(shape)]
        moving = {name for name, _, other in points if other != size}
        yield size, tuple(point for point in points if point[0] in moving)
