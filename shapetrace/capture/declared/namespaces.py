"""Where a function's annotations are to be read: its globals, its closure, its own names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, FunctionType

from shapetrace.capture.declared.evaluate import NOWHERE, Namespace
from shapetrace.capture.source.registry import FunctionSite


def by_file(functions: Iterable[FunctionType]) -> dict[str, list[FunctionType]]:
    """Functions by the file that holds them."""
    found: dict[str, list[FunctionType]] = {}
    for function in functions:
        found.setdefault(function.__code__.co_filename, []).append(function)
    return found


def namespace(site: FunctionSite, functions: Mapping[str, Sequence[FunctionType]]) -> Namespace:
    """The namespace of one function.

    Args:
        site: Where it is.
        functions: The functions that are alive, by file.
    """
    here = functions.get(site.file, ())
    function = living_function(site, functions)
    if function is not None:
        return Namespace(
            {**function.__globals__, **closure_of(function)},
            _bound(function.__code__),
            function.__annotations__,
            variadic=variadic_of(function.__code__),
        )
    if here:  # made by one of these while it ran
        return Namespace(here[0].__globals__, whole=False)
    return NOWHERE


def living_function(
    site: FunctionSite, functions: Mapping[str, Sequence[FunctionType]]
) -> FunctionType | None:
    """The living function at a place; None for one that is made anew at each call."""
    here = functions.get(site.file, ())
    own = [f for f in here if f.__code__.co_qualname == site.qualname and _starts(f) <= site.line]
    return max(own, key=_starts, default=None)


def _starts(function: FunctionType) -> int:
    return function.__code__.co_firstlineno


def closure_of(function: FunctionType) -> dict[str, object]:
    """What the variables of enclosing functions hold."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


def _bound(code: CodeType) -> frozenset[str]:
    return frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))


def variadic_of(code: CodeType) -> frozenset[str]:
    """The parameters ``*args`` and ``**kwargs``, whose annotations are those of one item."""
    first = code.co_argcount + code.co_kwonlyargcount
    count = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return frozenset(code.co_varnames[first : first + count])
