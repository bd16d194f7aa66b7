"""Names for an axis from what moves it.

Double one size at a time and look at the axis. Names that scale it by whole powers are
its factors. What is left is a sum of products, a product of sums, or a floor division,
found by trying the forms that the measured points leave possible; the simplest that
holds at every point is taken. A name is claimed only when moving it moved the axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product as every
from math import gcd, prod
from typing import TYPE_CHECKING

from shapetrace.dims.expressions import ExpressionError, evaluate
from shapetrace.dims.meaning import Dim
from shapetrace.dims.samples import Curve, Samples, sample
from shapetrace.dims.terms import (
    Term,
    floor_division,
    number,
    power,
    product,
    square,
    symbol,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LARGEST_DIVISOR = 64
_MOST_NAMES = 5
_KEPT = 10
_OFFSETS = (1, -1, 2)
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


def candidates(samples: Samples) -> Iterator[Term]:
    """Expressions worth trying, squares of others last."""
    yield from _unsquared(samples)
    yield from _squares(samples)


def _unsquared(samples: Samples) -> Iterator[Term]:
    """Powers taken out first, then sums or products of the rest.

    Where that leaves a fraction, a floor stands somewhere, and what looked like a power
    may be ``a//2``: then nothing is taken out.
    """
    powers = {name: e for name in samples.curves if (e := samples.exponent(name)) is not None}
    rest = samples.divided(powers)
    if not rest.curves:
        yield _monomial(powers, rest.base)
    elif len(rest.curves) <= _MOST_NAMES:
        for inner in (*_sums(rest), *_products(rest), *_shifted(rest)):
            yield _monomial(powers, Fraction(1), inner)
    if rest.base.denominator != 1 and len(samples.curves) <= _MOST_NAMES:
        yield from _products(samples)
        if rest.curves or len(samples.curves) == 1:
            yield from _sums(samples)
    yield from _quotients(samples)


def _squares(samples: Samples) -> Iterator[Term]:
    """``(image_size//patch_size)**2+1``: patches of a square image, and a class token."""
    for offset in (0, *_OFFSETS):
        root = samples.lowered(offset).root()
        if root is not None:
            yield from (total([square(term)], offset) for term in _unsquared(root))


def _shifted(samples: Samples) -> Iterator[Term]:
    """A product and a small number: ``(H//16)*(W//16)+1``, patches and a class token."""
    if len(samples.curves) > 1:
        for offset in _OFFSETS:
            for inner in _products(samples.lowered(offset)):
                yield total([inner], offset)


def _monomial(powers: Mapping[str, int], constant: Fraction, inner: Term | None = None) -> Term:
    """``3*a*b*(inner)//(2*c)``."""
    top = [number(constant.numerator)] if constant.numerator != 1 else []
    top += [term for name, e in powers.items() if e > 0 for term in power(name, e)]
    bottom = [number(constant.denominator)] if constant.denominator != 1 else []
    bottom += [term for name, e in powers.items() if e < 0 for term in power(name, -e)]
    return floor_division(product([*top, *([inner] if inner else [])]), bottom)


def _quotients(samples: Samples) -> Iterator[Term]:
    """``a*b//(c*2)``: what makes the axis grow over what makes it shrink, rounded down."""
    grows = {name: curve[1][1] > samples.base for name, curve in samples.curves.items()}
    top = prod(samples.sizes[name] for name, up in grows.items() if up)
    bottom = prod(samples.sizes[name] for name, up in grows.items() if not up)
    if samples.base <= 0:
        return
    ratio = Fraction(top, bottom)
    first, last = int(ratio / (samples.base + 1)) + 1, int(ratio / samples.base)
    powers = {name: 1 if up else -1 for name, up in grows.items()}
    for divisor in range(first, min(last, first + _LARGEST_DIVISOR) + 1):
        yield _monomial(powers, Fraction(1, divisor))


Part = tuple[Term, Fraction]
"""A summand and its value at the base point."""


def _sums(samples: Samples) -> Iterator[Term]:
    """Sums in which each name stands once, alone or in a product with others."""
    for groups in _partitions(tuple(samples.curves)):
        choices = [_simplest(_summands(samples, group)) for group in groups]
        for parts in every(*choices):
            constant = samples.base - sum(value for _, value in parts)
            if constant.denominator == 1:
                yield total([term for term, _ in parts], int(constant))


def _summands(samples: Samples, group: tuple[str, ...]) -> Iterator[Part]:
    """What a group of names can add: ``c*a*b`` where all of it is straight, or a floor."""
    slopes = [samples.slope(name) for name in group]
    straight = [slope for slope in slopes if slope is not None]
    if len(straight) == len(group):
        shares = {s * samples.sizes[name] for s, name in zip(straight, group, strict=True)}
        if len(shares) == 1:
            share = shares.pop()
            constant = share / prod(samples.sizes[name] for name in group)
            yield _monomial(dict.fromkeys(group, 1), constant), share
    if len(group) == 1 and (slopes[0] is None or slopes[0].denominator != 1):
        yield from _floors(samples, group[0])


def _floors(samples: Samples, name: str) -> Iterator[Part]:
    """``(a-k)//d``, where the steps agree: as convolutions write it, with 0 <= k < d."""
    curve = samples.curves[name]
    (x0, y0), *_ = curve
    if any(y.denominator != 1 for _, y in curve):
        return
    steps = [(x, int(y - y0)) for x, y in curve]
    for divisor in _divisors(curve):
        for shift in range(divisor):
            first = (x0 - shift) // divisor
            if all((x - shift) // divisor - first == step for x, step in steps):
                top = symbol(name) if shift == 0 else total([symbol(name)], -shift)
                yield floor_division(top, [number(divisor)]), Fraction(first)


def _divisors(curve: Curve) -> range:
    """The divisors that the longest step leaves possible: rounding moves it by less than 1."""
    (x0, y0), *rest = curve
    run, rise = max((x - x0, y - y0) for x, y in rest)
    if run <= 0 or rise < 0:
        return range(0)
    least = max(2, int(run / (rise + 1)))
    most = int(run / (rise - 1)) + 1 if rise > 1 else _LARGEST_DIVISOR
    return range(least, min(most, _LARGEST_DIVISOR) + 1)


def _products(samples: Samples) -> Iterator[Term]:
    """Products in which each name has a factor of its own: ``(a+1)*(b//2)``."""
    names = tuple(samples.curves)
    if len(names) == 1:
        yield from (term for term, _ in _simplest(_factors(samples, names[0])))
        return
    for parts in every(*(_simplest(_factors(samples, name)) for name in names)):
        value = prod((value for _, value in parts), start=Fraction(1))
        constant = samples.base / value if value else Fraction(1)
        yield _monomial({}, constant, product([term for term, _ in parts]))


def _factors(samples: Samples, name: str) -> Iterator[Part]:
    """A name's own curve with what all its points share taken out."""
    curve = samples.curves[name]
    if any(y.denominator != 1 for _, y in curve):
        return
    shared = gcd(*(int(y) for _, y in curve))
    for scale in (k for k in range(shared, 0, -1) if shared % k == 0):
        scaled = Samples(
            samples.sizes, samples.base / scale, {name: tuple((x, y / scale) for x, y in curve)}
        )
        for term, value in _simplest(_summands(scaled, (name,)))[:2]:
            constant = scaled.base - value
            if constant.denominator == 1:
                yield total([term], int(constant)), scaled.base


def _simplest(parts: Iterator[Part]) -> list[Part]:
    """The few that are worth combining with others."""
    return sorted(parts, key=lambda part: part[0].cost)[:_KEPT]


def _partitions(names: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    """Every way to part names into groups, each in the given order."""
    if not names:
        yield []
        return
    first, *others = names
    for smaller in _partitions(tuple(others)):
        yield [(first,), *smaller]
        for i, group in enumerate(smaller):
            yield [(first, *group), *smaller[:i], *smaller[i + 1 :]]


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
