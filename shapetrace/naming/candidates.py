"""Expressions that may be what an axis is, from the points that were measured."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as every
from math import gcd, prod
from typing import TYPE_CHECKING

from shapetrace.naming.samples import Curve, Samples
from shapetrace.naming.terms import (
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
    from collections.abc import Iterator, Mapping

_LARGEST_DIVISOR = 64
_MOST_NAMES = 5
_KEPT = 10
_OFFSETS = (1, -1, 2)


def candidates(samples: Samples) -> Iterator[Term]:
    """Expressions worth trying, squares of others last."""
    yield from _unsquared(samples)
    if not _is_plain(samples):
        yield from _tilings(samples)
        yield from _squares(samples)


def _is_plain(samples: Samples) -> bool:
    """Whether a whole number times names, each once, is all that there is to it."""
    powers = {name: samples.exponent(name) for name in samples.curves}
    whole = {name: e for name, e in powers.items() if e in (1, -1)}
    return len(whole) == len(powers) and samples.divided(whole).base.denominator == 1


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
    """``(image_size//patch_size)**2+1``: patches of a square image, and a class token.

    Or ``2*width*(size//4)**2``, where other names and a number stand before the square.
    """
    for offset in (0, *_OFFSETS):
        lowered = samples.lowered(offset)
        exponents = {name: lowered.exponent(name) for name in lowered.curves}
        straight = {name: e for name, e in exponents.items() if e is not None and abs(e) == 1}
        for powers in ({}, straight) if straight else ({},):
            rest = lowered.divided(powers)
            for scale in rest.scales() if rest.curves else ():
                root = rest.divided({}, scale).root()
                for term in _unsquared(root) if root is not None else ():
                    yield total([_monomial(powers, Fraction(scale), square(term))], offset)


def _tilings(samples: Samples) -> Iterator[Term]:
    """``(H//patch)*(W//patch)+1``: how often something fits along several axes."""
    grows = {name: samples.grows(name) for name in samples.curves}
    top = [name for name, up in grows.items() if up]
    bottom = [name for name, up in grows.items() if not up]
    if len(top) < 2 or not bottom or len(grows) > _MOST_NAMES:  # noqa: PLR2004 - a tiling has two axes
        return
    for divisors in every(("", *bottom), repeat=len(top)):
        if set(divisors) - {""} != set(bottom):
            continue
        factors = [_tiles(name, by, samples.sizes) for name, by in zip(top, divisors, strict=True)]
        value = prod(count for _, count in factors)
        for offset in (0, *_OFFSETS):
            constant = (samples.base - offset) / value if value else Fraction(0)
            if constant > 0:
                inner = product([term for term, _ in factors])
                yield total([_monomial({}, constant, inner)], offset)


def _tiles(name: str, by: str, sizes: Mapping[str, int]) -> tuple[Term, int]:
    if not by:
        return symbol(name), sizes[name]
    return floor_division(symbol(name), [symbol(by)]), sizes[name] // sizes[by]


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
    grows = {name: samples.grows(name) for name in samples.curves}
    top = prod(samples.sizes[name] for name, up in grows.items() if up)
    bottom = prod(samples.sizes[name] for name, up in grows.items() if not up)
    if samples.base <= 0:
        return
    ratio = Fraction(top, bottom)
    first, last = int(ratio / (samples.base + 1)) + 1, int(ratio / samples.base)
    powers = {name: 1 if up else -1 for name, up in grows.items()}
    for divisor in range(first, min(last, first + _LARGEST_DIVISOR) + 1):
        yield _monomial(powers, Fraction(1, divisor))


Summand = tuple[Term, Fraction]
"""A summand and its value at the base point."""


def _sums(samples: Samples) -> Iterator[Term]:
    """Sums in which each name stands once, alone or in a product with others."""
    for groups in _partitions(tuple(samples.curves)):
        choices = [_simplest(_summands(samples, group)) for group in groups]
        for parts in every(*choices):
            constant = samples.base - sum(value for _, value in parts)
            if constant.denominator == 1:
                yield total([term for term, _ in parts], int(constant))


def _summands(samples: Samples, group: tuple[str, ...]) -> Iterator[Summand]:
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


def _floors(samples: Samples, name: str) -> Iterator[Summand]:
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


def _factors(samples: Samples, name: str) -> Iterator[Summand]:
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


def _simplest(parts: Iterator[Summand]) -> list[Summand]:
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
