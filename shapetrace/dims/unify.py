"""Several declared shapes against what came: who bound each name, and what conflicts.

It follows jaxtyping's rules: axes from left to right, a variadic last; a name takes the
first size that it meets; a shape that fails binds nothing. Unlike jaxtyping it goes on
after a failure, remembers who bound what, and lists every conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from shapetrace.dims.axes import (
    Anonymous,
    AnonymousVariadic,
    Axis,
    Fixed,
    Named,
    Symbolic,
    Variadic,
    parse_dims,
    print_axis,
)
from shapetrace.dims.expressions import (
    ExpressionError,
    Number,
    UnboundNameError,
    evaluate,
    names_in,
)

AxisSizes = tuple[int, ...]
ConflictKind = Literal["rank", "size", "literal", "expression", "unbound", "variadic"]


@dataclass(frozen=True, slots=True)
class Binding:
    """A name and what it stands for since its first appearance.

    Attributes:
        name: The name; a variadic's with its star: ``*batch``.
        size: Its size; a shape for a variadic.
        source: Who bound it: the number of the observation, or whatever a caller passed.
        broadcastable: Whether a variadic's shape may still grow by broadcasting.
    """

    name: str
    size: int | AxisSizes
    source: int
    broadcastable: bool = False


Bindings = Mapping[str, Binding]


@dataclass(frozen=True, slots=True)
class Conflict:
    """One reason why a shape does not fit its declaration.

    Attributes:
        kind: What is wrong: the number of axes, a name's size, a written number, an
            expression's value, an expression with unbound names, a variadic's shape.
        source: The number of the observation that fails.
        axis: The axis, from 0; None for a wrong number of axes.
        written: The axis as declared; the whole declaration for a wrong number of axes.
        observed: The size that came; a shape for a variadic, the rank for a wrong number.
        expected: What it should have been; None where that is unknown.
        bound: The binding that says so, or those that the expression was computed from.
        problem: What is wrong with an expression that has no value.
    """

    kind: ConflictKind
    source: int
    axis: int | None
    written: str
    observed: int | AxisSizes
    expected: Number | AxisSizes | None = None
    bound: tuple[Binding, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Unification:
    """What several observations come to.

    Attributes:
        bindings: Every name with its first size and who bound it.
        conflicts: Every conflict, in order.
    """

    bindings: Bindings = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()


def unify(
    observations: Iterable[tuple[str, AxisSizes]], bindings: Bindings | None = None
) -> Unification:
    """Fit shapes to their declarations, one after the other.

    Args:
        observations: Dimension string and shape, in the order in which values came.
        bindings: Names that are bound already.

    Raises:
        DimsError: A dimension string cannot be read.
    """
    known: Bindings = dict(bindings or {})
    conflicts: list[Conflict] = []
    for source, (dims, shape) in enumerate(observations):
        known, found = fit(parse_dims(dims), shape, known, source)
        conflicts += found
    return Unification(known, tuple(conflicts))


def fit(
    axes: tuple[Axis, ...], shape: AxisSizes, bindings: Bindings, source: int
) -> tuple[Bindings, list[Conflict]]:
    """Fit one shape to its axes.

    Returns:
        The bindings with those that the shape adds, which are none where it fails; and
        the conflicts.
    """
    pairs = align(axes, shape)
    if pairs is None:
        written = " ".join(print_axis(axis) for axis in axes)
        return bindings, [
            Conflict(
                kind="rank",
                source=source,
                axis=None,
                written=written,
                observed=len(shape),
                expected=_rank(axes),
            )
        ]
    grown = dict(bindings)
    conflicts = [
        replace(conflict, source=source, axis=number)
        for number, axis, size in pairs
        if (conflict := _check(axis, size, grown, source)) is not None
    ]
    return (bindings, conflicts) if conflicts else (grown, [])


def _rank(axes: tuple[Axis, ...]) -> int:
    """The number of axes; without its variadic, the least there may be."""
    return sum(not isinstance(axis, Variadic | AnonymousVariadic) for axis in axes)


def align(
    axes: tuple[Axis, ...], shape: AxisSizes
) -> list[tuple[int, Axis, int | AxisSizes]] | None:
    """Each axis with its number and what it meets, a variadic last; None for a wrong rank."""
    open_ended = [i for i, a in enumerate(axes) if isinstance(a, Variadic | AnonymousVariadic)]
    extra = len(shape) - _rank(axes)
    if extra < 0 or (extra and not open_ended):
        return None
    if not open_ended:
        return [(i, axis, size) for i, (axis, size) in enumerate(zip(axes, shape, strict=True))]
    at = open_ended[0]
    pairs: list[tuple[int, Axis, int | AxisSizes]] = [(i, axes[i], shape[i]) for i in range(at)]
    tail = len(axes) - at - 1
    pairs += [(len(shape) - tail + i, axes[at + 1 + i], shape[at + extra + i]) for i in range(tail)]
    return [*pairs, (at, axes[at], shape[at : at + extra])]


def _check(
    axis: Axis, size: int | AxisSizes, grown: dict[str, Binding], source: int
) -> Conflict | None:
    """One axis against its size; binds its name in `grown`."""
    match axis, size:
        case ((Anonymous() | AnonymousVariadic()), _):
            return None
        case Variadic(), tuple():
            return _check_variadic(axis, size, grown, source)
        case ((Named() | Fixed() | Symbolic()), int()) if axis.broadcastable and size == 1:
            return None
        case Fixed(), int():
            return _check_literal(axis, size)
        case Symbolic(), int():
            return _check_expression(axis, size, grown)
        case Named(), int():
            return _check_name(axis, size, grown, source)
    raise TypeError(f"{axis} cannot meet {size}")


def _check_literal(axis: Fixed, size: int) -> Conflict | None:
    if axis.size == size:
        return None
    return Conflict(
        kind="literal",
        source=0,
        axis=0,
        written=print_axis(axis),
        observed=size,
        expected=axis.size,
    )


def _check_name(axis: Named, size: int, grown: dict[str, Binding], source: int) -> Conflict | None:
    if axis.per_leaf:
        return None
    found = grown.setdefault(axis.name, Binding(axis.name, size, source))
    if found.size == size:
        return None
    return Conflict(
        kind="size",
        source=0,
        axis=0,
        written=print_axis(axis),
        observed=size,
        expected=found.size,
        bound=(found,),
    )


def _check_expression(axis: Symbolic, size: int, grown: Bindings) -> Conflict | None:
    sizes = {name: b.size for name, b in grown.items() if isinstance(b.size, int)}
    try:
        value = evaluate(axis.text, sizes)
    except UnboundNameError as error:
        if all(name.startswith("{") for name in error.names):
            return None  # only the running code knows; its verdict is jaxtyping's
        return Conflict("unbound", 0, 0, print_axis(axis), size, problem=str(error))
    except ExpressionError as error:
        return Conflict("unbound", 0, 0, print_axis(axis), size, problem=str(error))
    if value == size:
        return None
    used = tuple(grown[name] for name in names_in(axis.text))
    return Conflict(
        kind="expression",
        source=0,
        axis=0,
        written=print_axis(axis),
        observed=size,
        expected=value,
        bound=used,
    )


def _check_variadic(
    axis: Variadic, shape: AxisSizes, grown: dict[str, Binding], source: int
) -> Conflict | None:
    name = f"*{axis.name}"
    found = grown.get(name)
    if found is None or axis.per_leaf:
        grown[name] = Binding(name, shape, source, axis.broadcastable)
        return None
    earlier = found.size if isinstance(found.size, tuple) else (found.size,)
    joined = _broadcast(shape, earlier) if axis.broadcastable or found.broadcastable else None
    fits = (
        shape == earlier
        or (joined is not None and axis.broadcastable and found.broadcastable)
        or (joined == shape and found.broadcastable)
        or (joined == earlier and axis.broadcastable)
    )
    if not fits:
        return Conflict(
            kind="variadic",
            source=0,
            axis=0,
            written=print_axis(axis),
            observed=shape,
            expected=earlier,
            bound=(found,),
        )
    if found.broadcastable and joined is not None:
        grown[name] = replace(found, size=joined, broadcastable=axis.broadcastable)
    return None


def _broadcast(left: AxisSizes, right: AxisSizes) -> AxisSizes | None:
    """The shape that two shapes broadcast to; None when they do not."""
    rank = max(len(left), len(right))
    pairs = list(_padded(left, right, rank))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(b if a == 1 else a for a, b in pairs)


def _padded(left: AxisSizes, right: AxisSizes, rank: int) -> Iterator[tuple[int, int]]:
    return zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
