"""jaxtyping's dtype classes: the narrowest one for some dtypes.

Source: jaxtyping's documentation, "Dtype" (docs.kidger.site/jaxtyping/api/array).
"""

from __future__ import annotations

import re
from collections.abc import Collection

_FAMILIES = (
    (re.compile(r"bfloat16|float(16|32|64)|float8_e(4m3(b11)?fn(uz)?|5m2(fnuz)?)"), "Float"),
    (re.compile(r"uint(8|16|32|64)"), "UInt"),
    (re.compile(r"int(8|16|32|64)"), "Int"),
    (re.compile(r"bool"), "Bool"),
    (re.compile(r"complex(64|128)"), "Complex"),
)
_UNIONS = (
    ("Integer", {"Int", "UInt"}),
    ("Inexact", {"Float", "Complex"}),
    ("Real", {"Float", "Int", "UInt"}),
    ("Num", {"Float", "Int", "UInt", "Complex"}),
)
_EXACT = {
    "float8_e4m3b11fnuz": "Float8e4m3b11fnuz",
    "float8_e4m3fn": "Float8e4m3fn",
    "float8_e4m3fnuz": "Float8e4m3fnuz",
    "float8_e5m2": "Float8e5m2",
    "float8_e5m2fnuz": "Float8e5m2fnuz",
    "bfloat16": "BFloat16",
    "complex64": "Complex64",
    "complex128": "Complex128",
    **{f"float{bits}": f"Float{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
}


def dtype_class(dtypes: Collection[str], *, exact: bool = False) -> str:
    """The narrowest class that holds all of some dtypes.

    Args:
        dtypes: Torch's names without the prefix: ``float32``.
        exact: Whether one dtype alone gets its own class (``Float32``) and not its family's.

    Returns:
        The class's name; ``Shaped``, which holds everything, where nothing narrower does.
    """
    if exact and len(set(dtypes)) == 1:
        only = next(iter(dtypes))
        if only in _EXACT:
            return _EXACT[only]
    families = {_family(dtype) for dtype in dtypes}
    if len(families) == 1:
        return families.pop()
    return next((name for name, members in _UNIONS if families <= members), "Shaped")


def _family(dtype: str) -> str:
    return next((name for pattern, name in _FAMILIES if pattern.fullmatch(dtype)), "Shaped")
