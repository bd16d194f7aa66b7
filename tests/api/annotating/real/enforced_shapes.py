"""Beartype for the annotations of tensors alone: other people's other ones may be wrong."""

from __future__ import annotations

from beartype import beartype


def shapes(function):
    """Check a function's annotations that speak of shapes."""
    annotations = getattr(function, "__annotations__", None)
    if not isinstance(function, type) and annotations:
        function.__annotations__ = {
            name: hint for name, hint in annotations.items() if "jaxtyping" in _text(hint)
        }
    return beartype(function)


def _text(hint) -> str:
    if isinstance(hint, str):
        return "jaxtyping" if "Tensor, " in hint else ""
    parts = " ".join(_text(part) for part in getattr(hint, "__args__", ()))
    return f"{getattr(type(hint), '__module__', '')} {getattr(hint, '__module__', '')} {parts}"
