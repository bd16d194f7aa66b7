"""What Python callers give, checked before anything runs: a model, names of axes."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from shapetrace.errors import ShapetraceError, with_article


def check_module(model: object, *, optional: bool = False) -> None:
    """Refuse what is given in place of a model.

    Args:
        model: A module.
        optional: Whether None will do, where there is none to be named.

    Raises:
        ShapetraceError: Saying what it is.
    """
    if isinstance(model, type):
        raise ShapetraceError(
            f"{model.__name__} is a class, not a model; make one first: {model.__name__}(...)"
        )
    if optional and model is None:
        return
    if not isinstance(model, nn.Module):
        kind = "None" if model is None else with_article(type(model).__name__)
        raise ShapetraceError(f"the model is {kind}, not an nn.Module; give a module")


def check_arg(arg: object) -> None:
    """Refuse arguments of a constructor that are none: ``{"width": 8}`` is what is wanted.

    Raises:
        ShapetraceError: Naming what was given.
    """
    if not isinstance(arg, Mapping):
        kind = with_article(type(arg).__name__)
        raise ShapetraceError(f'arg is {kind}; give arguments by name, such as {{"width": 8}}')
    for name in arg:
        if not isinstance(name, str):
            raise ShapetraceError(f"arg: {name!r} is no name of an argument; names are texts")


def check_dims(dims: object) -> None:
    """Refuse names of axes that cannot be: ``{"B": 2, "n": 16}`` is what is wanted.

    Raises:
        ShapetraceError: Naming the entry.
    """
    if dims is None:
        return
    if not isinstance(dims, Mapping):
        kind = with_article(type(dims).__name__)
        raise ShapetraceError(f'dims is {kind}; give sizes by name, such as {{"B": 2, "n": 16}}')
    for name, size in dims.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ShapetraceError(f"dims: {name!r} is no name for an axis; give one such as n")
        if type(size) is not int or size < 1:
            raise ShapetraceError(f"dims: {name} is {size!r}; a size is a whole number from 1 on")
