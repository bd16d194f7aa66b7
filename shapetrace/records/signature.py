"""A function with annotations of arrays, and who checks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Enforcement = Literal["checked", "unchecked", "none"]
"""A type checker wraps it; `jaxtyped` wraps it, but without one; nothing does."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function with jaxtyping annotations.

    Attributes:
        file: Source file.
        line: Line of its ``def``.
        function: Qualified name.
        annotated: Its annotated parameters, and ``return``.
        enforcement: Who checks them when it is called.
    """

    file: str
    line: int
    function: str
    annotated: tuple[str, ...]
    enforcement: Enforcement
