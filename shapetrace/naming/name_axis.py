"""Names for an axis from what moves it.

Double one size at a time and look at the axis. Names that scale it by whole powers are
its factors. What is left is a sum of products, a product of sums, or a floor division,
found by trying the forms that the measured points leave possible; the simplest that
holds at every point is taken. A name is claimed only when moving it moved the axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.dims.expressions import ExpressionError, evaluate
from shapetrace.dims.meaning import Dim
from shapetrace.naming.candidates import candidates
from shapetrace.naming.samples import sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from shapetrace.naming.samples import Samples
    from shapetrace.naming.terms import Term

_RIVAL = 3.0
"""How much more an expression may cost and still put the simplest in doubt."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What an axis was found to be.

    Attributes:
        dim: The expression with its evidence, or the number with the reason.
        moved_by: The names that move the axis.
        unsettled: Names of which another size, best one that no small number divides,
            would make sure; the expression holds at every measured point already.
    """

    dim: Dim
    moved_by: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()


def name_axis(
    base: int, probes: Mapping[str, Mapping[int | Fraction, int]], sizes: Mapping[str, int]
) -> Naming:
    """Name one axis.

    Args:
        base: Its size with every name at its base size.
        probes: For each name, the axis's size by the factor on the name.
        sizes: Every name's base size, in the order in which names are to be printed.

    Raises:
        ValueError: A probed name has no base size, or a factor gives no whole size.
    """
    samples = sample(base, probes, sizes)
    moved = tuple(samples.curves)
    if not moved:
        tried = ", ".join(name for name in sizes if name in probes)
        reason = f"moving {tried} leaves it" if tried else "nothing was probed"
        return Naming(Dim(str(base), "literal", reason))
    fitting = _fitting(samples)
    if not fitting:
        reason = f"{', '.join(moved)} move it, but no simple expression fits"
        return Naming(Dim(str(base), "literal", reason), moved, _short(samples))
    dim = Dim(fitting[0].text, "probe", _evidence(samples))
    return Naming(dim, moved, _unsettled(samples, fitting))


def _fitting(samples: Samples) -> list[Term]:
    """Every expression found that holds at every point, the simplest first."""
    distinct = {term.text: term for term in candidates(samples)}
    fitting = [term for term in distinct.values() if holds(term.text, samples)]
    return sorted(fitting, key=lambda term: (term.cost, len(term.text), term.text))


def holds(text: str, samples: Samples) -> bool:
    """Whether an expression gives the axis at every measured point."""
    points = [(dict(samples.sizes), samples.base)]
    for name, curve in samples.curves.items():
        points += [({**samples.sizes, name: x}, y) for x, y in curve]
    try:
        return all(evaluate(text, sizes) == measured for sizes, measured in points)
    except ExpressionError:
        return False


def _evidence(samples: Samples) -> str:
    """``n 16 -> 32 makes it 17 -> 33``, for each name."""
    moves = []
    for name, ((x0, y0), *rest) in samples.curves.items():
        seen = ", ".join(f"{x} makes it {y}" for x, y in rest)
        moves.append(f"{name} from {x0} to {seen} from {y0}")
    return "; ".join(moves)


def _short(samples: Samples) -> tuple[str, ...]:
    return tuple(name for name in samples.curves if not samples.settled(name))


def _unsettled(samples: Samples, fitting: Sequence[Term]) -> tuple[str, ...]:
    """Names of which the measured points leave more than one form possible.

    A curve that is no power needs three points; and where another expression that is not
    much longer fits too and differs beside a measured point, that size would decide.
    """
    best, *others = fitting
    rivals = [term.text for term in others if term.cost <= best.cost + _RIVAL]
    return tuple(
        name
        for name in samples.curves
        if (samples.exponent(name) is None and not samples.settled(name))
        or any(_differ(best.text, rival, samples, name) for rival in rivals)
    )


def _differ(text: str, rival: str, samples: Samples, name: str) -> bool:
    """Whether two expressions differ at a size of a name beside a measured one."""
    for x, _ in samples.curves[name]:
        for beside in (x + 1, x + 2, x + 3):
            sizes = {**samples.sizes, name: beside}
            if evaluate(text, sizes) != evaluate(rival, sizes):
                return True
    return False
