"""FLOPs of einsum and bilinear forms, which torch runs as products of pairs.

Two factors are multiplied at a time. An axis that is left in neither the result nor the
factors to come is contracted: by a matrix product where both have it, else by summing it
out first. With no axis to contract the product is elementwise and not counted.
Source: torch's own einsum, which documents this order.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import attribute, formula, input_shape, integers

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord, Shape

LetterSizes = dict[str, int]
"""Size by axis label, of the axes that are not 1: those of size 1 are as good as absent."""


@formula("aten.einsum", attributes=("equation", "path"))
def einsum(op: OpRecord) -> int:
    """The pairs in the order of `path`, else from left to right."""
    equation = str(attribute(op, "equation")).replace(" ", "")
    terms, result = _parse(equation, [input_shape(op, i) for i in range(len(op.inputs))])
    path = attribute(op, "path", ())
    total = 0
    for first, second in _pairs(len(terms), path if isinstance(path, tuple) else ()):
        left, right = terms[first], terms[second]
        rest = [term for i, term in enumerate(terms) if i not in (first, second)]
        kept = set(result).union(*rest)
        total += _pair(left, right, kept)
        joined = {label: size for label, size in {**left, **right}.items() if label in kept}
        terms = [*rest, joined] if path else [joined, *rest]
    return total


@formula("aten.bilinear")
def bilinear(op: OpRecord) -> int:
    """``x W y``: first ``x W`` for each output, then its dot product with `y`."""
    first, weight = input_shape(op, 0), input_shape(op, 2)
    return 2 * prod(first[:-1]) * prod(weight) + 2 * prod(first[:-1]) * weight[0] * weight[2]


@formula("aten._trilinear", attributes=("expand1", "expand2", "expand3", "sumdim"))
def trilinear(op: OpRecord) -> int:
    """Three factors over a common space of axes, contracted pair after pair."""
    expand = [set(integers(op, f"expand{i}")) for i in (1, 2, 3)]
    rank = len(input_shape(op, 0)) + len(expand[0])
    first, second, third = (_spread(input_shape(op, i), expand[i], rank) for i in range(3))
    result = {str(axis) for axis in range(rank)} - {str(axis) for axis in integers(op, "sumdim")}
    total = _pair(first, second, result | set(third))
    joined = {k: v for k, v in {**first, **second}.items() if k in result | set(third)}
    return total + _pair(joined, third, result)


def _pair(left: LetterSizes, right: LetterSizes, kept: set[str]) -> int:
    """One pair: every axis that remains, times those contracted; 0 when there are none."""
    contracted = [label for label in left if label in right and label not in kept]
    if not contracted:
        return 0
    remaining = {k: v for k, v in {**left, **right}.items() if k in kept}
    return 2 * prod(remaining.values()) * prod(left[label] for label in contracted)


def _pairs(count: int, path: tuple[int, ...]) -> list[tuple[int, int]]:
    if path:
        return list(zip(path[::2], path[1::2], strict=True))
    return [(0, 1)] * (count - 1)


def _spread(shape: Shape, missing: set[int], rank: int) -> LetterSizes:
    axes = [axis for axis in range(rank) if axis not in missing]
    return {str(axis): size for axis, size in zip(axes, shape, strict=True) if size != 1}


def _parse(equation: str, shapes: list[Shape]) -> tuple[list[LetterSizes], list[str]]:
    """Each factor's sizes by label, and the labels of the result; dots become labels."""
    left, arrow, right = equation.partition("->")
    written = left.split(",")
    widest = max(len(s) - len(w.replace("...", "")) for w, s in zip(written, shapes, strict=True))
    dots = {w: len(s) - len(w.replace("...", "")) for w, s in zip(written, shapes, strict=True)}
    labels = [_expand(term, dots[term], widest) for term in written]
    counts = Counter(label for term in labels for label in term)
    implied = [
        *_dots(widest, widest),
        *sorted(x for x, n in counts.items() if n == 1 and x.isalpha()),
    ]
    result = _expand(right, widest, widest) if arrow else implied
    sizes = [
        {label: size for label, size in zip(term, shape, strict=True) if size != 1}
        for term, shape in zip(labels, shapes, strict=True)
    ]
    return sizes, result


def _expand(term: str, count: int, widest: int) -> list[str]:
    head, dots, tail = term.partition("...")
    return [*head, *(_dots(count, widest) if dots else []), *tail]


def _dots(count: int, widest: int) -> list[str]:
    """Labels for the axes under an ellipsis, aligned on the right."""
    return [f"<{i}>" for i in range(widest - count, widest)]
