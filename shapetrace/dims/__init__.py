"""What a dimension is: its name, where the name comes from, and how names combine."""

from shapetrace.dims.meaning import Declaration, DeclaredShape, Dim, Evidence

__all__ = ["Declaration", "DeclaredShape", "Dim", "Evidence"]
