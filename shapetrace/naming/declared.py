"""What the source declares each axis of a recorded value to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.dims import DeclaredShape, Dim, Fixed, Named, Symbolic, Variadic, parse_dims

if TYPE_CHECKING:
    from shapetrace.records.trace import Shape, TensorRecord


def declared_dims(record: TensorRecord) -> tuple[Dim | None, ...] | None:
    """What the source declares each axis to be; None where nothing is declared or it fails.

    An axis that the declaration leaves open (``_``, ``...``, ``*batch``) is None.
    """
    if record.declared is None or record.holds is False or record.declared.problem:
        return None
    for shape in record.declared.shapes:
        dims = _spread(shape, record.shape)
        if dims is not None:
            return dims
    return None


def _spread(declared: DeclaredShape, shape: Shape) -> tuple[Dim | None, ...] | None:
    axes = parse_dims(declared.dims)
    variadic = [i for i, axis in enumerate(axes) if type(axis).__name__.endswith("Variadic")]
    if variadic:
        first, extra = variadic[0], len(shape) - len(axes) + 1
        if extra < 0:
            return None
        axis = axes[first]
        name = axis.name if isinstance(axis, Variadic) else ""
        middle = [
            Dim(f"{name}_{i}", "declared", declared.dims) if name else None for i in range(extra)
        ]
        before = [_meaning(axis, declared) for axis in axes[:first]]
        after = [_meaning(axis, declared) for axis in axes[first + 1 :]]
        return *before, *middle, *after
    return None if len(axes) != len(shape) else tuple(_meaning(axis, declared) for axis in axes)


def _meaning(axis: object, declared: DeclaredShape) -> Dim | None:
    match axis:
        case Named(name):
            return Dim(name, "declared", declared.dims)
        case Symbolic(text):
            return Dim(text, "declared", declared.dims)
        case Fixed(size):
            return Dim(str(size), "declared", declared.dims)
    return None
