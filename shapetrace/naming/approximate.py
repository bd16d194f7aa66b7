"""Names that hold at most sizes, for axes that are rounded or limited.

A head's width `d_model//h` where it has to be even, the longer of two sequences: no simple
expression is right at every size, but one is right at the run's own and at others that
keep whole powers of the factor.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from shapetrace.naming.name_axis import name_axis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shapetrace.dims.meaning import Dim


def name_roughly(
    size: int, probes: Mapping[str, Mapping[int | Fraction, int]], sizes: Mapping[str, int]
) -> Dim | None:
    """Name an axis that no expression fits everywhere, by the points where one does.

    Args:
        size: The axis's size with every name at its base size.
        probes: For each name, the axis's size by the factor on the name.
        sizes: Every name's base size.

    Returns:
        The name, with where it does not hold in its detail; None when there is none.
    """
    kept: dict[str, dict[int | Fraction, int]] = {}
    dropped: list[str] = []
    for name, points in probes.items():
        kept[name] = _alike(size, points)
        away = [factor for factor in points if factor not in kept[name]]
        dropped += [f"{name}={sizes[name] * factor}" for factor in away]
        if not kept[name]:
            return None
    dim = name_axis(size, kept, sizes).dim
    if dim.evidence == "literal":
        return None
    return replace(dim, detail=f"{dim.detail}; not so at {', '.join(dropped)}")


def _alike(size: int, points: Mapping[int | Fraction, int]) -> dict[int | Fraction, int]:
    """The points on the curve of one power of the factor, of that with the most of them."""
    curves = [
        {factor: x for factor, x in points.items() if size * Fraction(factor) ** power == x}
        for power in (1, -1, 0, 2)
    ]
    return max(curves, key=len)
