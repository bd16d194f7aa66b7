"""What a dimension is: its name, where the name comes from, and how names combine.

Naming an axis from probes is in `dims.naming`, which a report has no need to import.
"""

from shapetrace.dims.axes import (
    Anonymous,
    AnonymousVariadic,
    Axis,
    DimsError,
    Fixed,
    Named,
    Symbolic,
    Variadic,
    parse_dims,
    print_axis,
    print_dims,
)
from shapetrace.dims.dtypes import dtype_fits, short_dtype
from shapetrace.dims.expressions import ExpressionError, UnboundNameError, evaluate, names_in
from shapetrace.dims.meaning import Declaration, DeclaredShape, Dim, Evidence
from shapetrace.dims.unify import Binding, Bindings, Conflict, Unification, align, fit, unify

__all__ = [
    "Anonymous",
    "AnonymousVariadic",
    "Axis",
    "Binding",
    "Bindings",
    "Conflict",
    "Declaration",
    "DeclaredShape",
    "Dim",
    "DimsError",
    "Evidence",
    "ExpressionError",
    "Fixed",
    "Named",
    "Symbolic",
    "UnboundNameError",
    "Unification",
    "Variadic",
    "align",
    "dtype_fits",
    "evaluate",
    "fit",
    "names_in",
    "parse_dims",
    "print_axis",
    "print_dims",
    "short_dtype",
    "unify",
]
