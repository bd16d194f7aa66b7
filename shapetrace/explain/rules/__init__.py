"""What clashed in a statement that failed: one file of rules per family of operations."""

from __future__ import annotations

from shapetrace.explain.rules import (  # noqa: F401 - importing a family registers its rules
    attention,
    broadcasting,
    contraction,
    convolution,
    indexing,
    joining,
    lookups,
    losses,
    missing,
    norms,
    recurrent,
    reshaping,
    unpacking,
)
from shapetrace.explain.rules.clash import Clash, ClashSide, Fix
from shapetrace.explain.rules.find_clashes import find_clashes

__all__ = ["Clash", "ClashSide", "Fix", "find_clashes"]
