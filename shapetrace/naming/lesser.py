"""Names for an axis that is the lesser or greater of two sizes, or a whole multiple of one.

A slice that reaches over the end, the crop of one image to another's size, the rank of a
matrix: moved alone, the smaller of the two is all that there is. Runs in which sizes change
places show both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import prod
from typing import NamedTuple

from shapetrace.naming.terms import Term, floor_division, number, product, symbol, total

SizesPoint = tuple[Mapping[str, int], int]
"""Every name's size in one run, and what the axis came to."""
_MOST_FACTORS = 3
_MOST_CONSTANT = 4096


class _Atom(NamedTuple):
    term: Term
    values: tuple[int, ...]


def name_lesser(points: Sequence[SizesPoint], names: Sequence[str]) -> str | None:
    """The simplest ``min(a,b)``, ``max(a,b)`` or ``a//b*b`` that an axis is at every point.

    Args:
        points: What was measured; both sides have to show, each at a point where the other
            would be wrong.
        names: The names that may be in it, in the order in which they are to be printed.
    """
    axis = tuple(size for _, size in points)
    names = [name for name in names if len({sizes[name] for sizes, _ in points}) > 1]
    best: tuple[float, str] | None = None
    for factors in _factors(points, names):
        scale = [prod(sizes[name] for name in factors) for sizes, _ in points]
        if any(value % by for value, by in zip(axis, scale, strict=True)):
            continue
        rest = tuple(value // by for value, by in zip(axis, scale, strict=True))
        for cost, text in _extremes(points, names, rest):
            whole = "*".join([*factors, text])
            found = (cost + 2 * len(factors), whole)
            best = found if best is None else min(best, found)
        if best is not None:
            return best[1]
    return None


def _factors(points: Sequence[SizesPoint], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What may stand before it: no name first, then names that divide the axis everywhere."""
    dividing = [name for name in names if all(size % sizes[name] == 0 for sizes, size in points)]
    for count in range(min(len(dividing), _MOST_FACTORS) + 1):
        yield from combinations(dividing, count)


def _extremes(
    points: Sequence[SizesPoint], names: Sequence[str], axis: tuple[int, ...]
) -> Iterator[tuple[float, str]]:
    yield from _rounded(points, names, axis)
    atoms = list(_atoms(points, names, axis))
    for word, bounds in (("min", _above), ("max", _below)):
        fitting = [atom for atom in atoms if bounds(atom.values, axis)]
        for one, other in combinations(fitting, 2):
            if _both_show(one.values, other.values, axis):
                first, second = (other, one) if one.term.text.isdecimal() else (one, other)
                text = f"{word}({first.term.text},{second.term.text})"
                yield one.term.cost + other.term.cost, text


def _rounded(
    points: Sequence[SizesPoint], names: Sequence[str], axis: tuple[int, ...]
) -> Iterator[tuple[float, str]]:
    """``width//h*h``: what is left of a width that is shared out evenly."""
    for one, other in permutations(names, 2):
        if all(s[one] // s[other] * s[other] == x for (s, _), x in zip(points, axis, strict=True)):
            yield 0.0, f"{one}//{other}*{other}"


def _above(values: tuple[int, ...], axis: tuple[int, ...]) -> bool:
    return all(map(int.__ge__, values, axis))


def _below(values: tuple[int, ...], axis: tuple[int, ...]) -> bool:
    return all(map(int.__le__, values, axis))


def _both_show(one: tuple[int, ...], other: tuple[int, ...], axis: tuple[int, ...]) -> bool:
    """Whether one of the two is right everywhere, and each somewhere where the other is not."""
    first = [value == size for value, size in zip(one, axis, strict=True)]
    second = [value == size for value, size in zip(other, axis, strict=True)]
    covered = all(a or b for a, b in zip(first, second, strict=True))
    alone = (a and not b for a, b in zip(first, second, strict=True))
    return covered and any(alone) and any(b and not a for a, b in zip(first, second, strict=True))


def _atoms(
    points: Sequence[SizesPoint], names: Sequence[str], axis: tuple[int, ...]
) -> Iterator[_Atom]:
    """Names, numbers, and what one step makes of them, for either side."""
    columns = {name: tuple(sizes[name] for sizes, _ in points) for name in names}
    constants = sorted(size for size in _recurring(axis) if 0 <= size <= _MOST_CONSTANT)
    for constant in dict.fromkeys([0, *constants]):
        yield _Atom(number(constant), (constant,) * len(points))
    for name, column in columns.items():
        term = symbol(name)
        yield _Atom(term, column)
        for k in (2, 3, 4):
            yield _Atom(product([number(k), term]), tuple(k * x for x in column))
            yield _Atom(floor_division(term, [number(k)]), tuple(x // k for x in column))
        for offset in sorted(_recurring(tuple(map(int.__sub__, axis, column)))):
            if 0 < abs(offset) <= _MOST_CONSTANT:
                yield _Atom(total([term], offset), tuple(x + offset for x in column))
    for one, other in combinations(names, 2):
        a, b = columns[one], columns[other]
        pair = list(zip(a, b, strict=True))
        yield _Atom(product([symbol(one), symbol(other)]), tuple(x * y for x, y in pair))
        yield _Atom(total([symbol(one), symbol(other)], 0), tuple(x + y for x, y in pair))
        yield _Atom(_less(one, other), tuple(x - y for x, y in pair))
        yield _Atom(_less(other, one), tuple(y - x for x, y in pair))


def _recurring(values: tuple[int, ...]) -> set[int]:
    """What is there more than once: a single point can be hit by any number."""
    return {value for value in values if values.count(value) > 1}


def _less(one: str, other: str) -> Term:
    return total([symbol(one), Term(f"-{other}", 0, 1.5)], 0)
