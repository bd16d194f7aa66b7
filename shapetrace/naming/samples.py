"""What was measured of one axis: its size at a base point and with one name moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, isqrt

Curve = tuple[tuple[int, Fraction], ...]
"""Sizes of a name, each with what the axis came to; the base first."""
_LARGEST_SCALE = 64


@dataclass(frozen=True)
class Samples:
    """One axis as a function of names, known along each name's own direction.

    Attributes:
        sizes: Size of each name at the base point.
        base: The axis there.
        curves: For each name that moves it, the axis at some sizes of the name.
    """

    sizes: Mapping[str, int]
    base: Fraction
    curves: Mapping[str, Curve]

    def exponent(self, name: str) -> int | None:
        """The whole power of a name that explains its whole curve; None without one."""
        curve = self.curves[name]
        for exponent in (1, -1, 2, -2, 3):
            scaled = (self.base * Fraction(x, curve[0][0]) ** exponent for x, _ in curve)
            if all(value == measured for value, (_, measured) in zip(scaled, curve, strict=True)):
                return exponent
        return None

    def grows(self, name: str) -> bool:
        """Whether a larger size of a name makes the axis larger."""
        smallest, *_, largest = sorted(self.curves[name])
        return largest[1] > smallest[1]

    def slope(self, name: str) -> Fraction | None:
        """The slope of a name's curve where it is a straight line."""
        (x0, y0), *rest = self.curves[name]
        slopes = {(y - y0) / (x - x0) for x, y in rest}
        return slopes.pop() if len(slopes) == 1 else None

    def divided(self, exponents: Mapping[str, int], number: int = 1) -> Samples:
        """What is left when powers of some names, and a number, are taken out."""
        factor = Fraction(number)
        for name, exponent in exponents.items():
            factor *= Fraction(self.sizes[name]) ** exponent
        curves = {
            name: tuple((x, y / factor) for x, y in curve)
            for name, curve in self.curves.items()
            if name not in exponents
        }
        return replace(self, base=self.base / factor, curves=curves)

    def lowered(self, offset: int) -> Samples:
        """The same axis less a constant."""
        curves = {n: tuple((x, y - offset) for x, y in curve) for n, curve in self.curves.items()}
        return replace(self, base=self.base - offset, curves=curves)

    def root(self) -> Samples | None:
        """The square root of the axis; None where some size is no square."""
        base = _root(self.base)
        curves = {n: [(x, _root(y)) for x, y in curve] for n, curve in self.curves.items()}
        if base is None or any(y is None for curve in curves.values() for _, y in curve):
            return None
        whole = {n: tuple((x, y) for x, y in curve if y is not None) for n, curve in curves.items()}
        return replace(self, base=base, curves=whole)

    def scales(self) -> list[int]:
        """The numbers that divide the axis at every point."""
        values = [y for curve in self.curves.values() for _, y in curve]
        if any(value.denominator != 1 or value < 1 for value in values):
            return []
        shared = gcd(*(int(value) for value in values))
        return [k for k in range(1, min(shared, _LARGEST_SCALE) + 1) if shared % k == 0]

    def settled(self, name: str) -> bool:
        """Whether three points or more lie on a name's curve."""
        return len(self.curves[name]) > 2  # noqa: PLR2004 - two points fit any line


def sample(
    base: int, probes: Mapping[str, Mapping[int | Fraction, int]], sizes: Mapping[str, int]
) -> Samples:
    """Order what was measured; names that never move the axis are left out.

    Raises:
        ValueError: A probed name has no base size, or a factor gives no whole size.
    """
    curves: dict[str, Curve] = {}
    for name in sizes:
        points = {Fraction(sizes[name]): base}
        for factor, measured in probes.get(name, {}).items():
            points[Fraction(sizes[name]) * factor] = measured
        if any(x.denominator != 1 for x in points):
            raise ValueError(f"a factor of {name} = {sizes[name]} gives no whole size")
        if len(set(points.values())) > 1:
            curves[name] = tuple((int(x), Fraction(y)) for x, y in points.items())
    unknown = [name for name in probes if name not in sizes]
    if unknown:
        raise ValueError(f"{unknown[0]} was probed but has no base size")
    return Samples(sizes, Fraction(base), curves)


def _root(value: Fraction) -> Fraction | None:
    if value < 1 or value.denominator != 1:
        return None
    root = isqrt(value.numerator)
    return Fraction(root) if root * root == value else None
