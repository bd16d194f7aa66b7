"""Which dtypes a jaxtyping class accepts, and dtypes in short for people.

Source: the classes of jaxtyping 0.3, whose verdicts a test compares with.
"""

from __future__ import annotations

_UINTS = frozenset(f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64))
_INTS = frozenset(f"int{bits}" for bits in (2, 4, 8, 16, 32, 64))
_FLOATS = frozenset(
    {"bfloat16", "float16", "float32", "float64", "float4_e2m1fn"}
    | {f"float8_{kind}" for kind in ("e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}
)
_COMPLEX = frozenset({"complex64", "complex128"})
_GROUPS = {
    "Bool": frozenset({"bool"}),
    "UInt": _UINTS,
    "Int": _INTS,
    "Integer": _UINTS | _INTS,
    "Float": _FLOATS,
    "Complex": _COMPLEX,
    "Inexact": _FLOATS | _COMPLEX,
    "Real": _FLOATS | _UINTS | _INTS,
    "Num": _UINTS | _INTS | _FLOATS | _COMPLEX,
    "Key": frozenset({"prng_key"}),
}
_SINGLE = {name.replace("_", ""): name for name in _UINTS | _INTS | _FLOATS | _COMPLEX}
_SHORT = (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c"))


def dtype_fits(annotated: str, dtype: str) -> bool | None:
    """Whether a jaxtyping class accepts a dtype; None for a class of the user's own.

    Args:
        annotated: The class's name: ``Float``, ``Int64``, ``Shaped``.
        dtype: Torch's name: ``float32``.
    """
    if annotated == "Shaped":
        return True
    if annotated in _GROUPS:
        return dtype in _GROUPS[annotated]
    single = _SINGLE.get(annotated.lower())
    return None if single is None else dtype == single


def short_dtype(dtype: str) -> str:
    """``f32`` of ``float32``, ``i64`` of ``int64``; others as they are."""
    for name, short in _SHORT:
        rest = dtype.removeprefix(name)
        if rest != dtype and rest[:1].isdigit():
            return short + rest
    return dtype
