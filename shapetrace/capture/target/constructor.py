"""What a module's constructor was likely called with, told from what it left behind."""

from __future__ import annotations

import inspect
import time
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from shapetrace.capture.values import members

Distance = Callable[[Mapping[str, Any]], int]
"""Makes a module from arguments, and counts in how many facts it is another one."""

_FETCHES = ("pretrained", "weight", "download", "checkpoint", "url", "path", "file", "device")
"""Parameters named so may make a constructor fetch something: it is not called with them."""
_MOST_SECONDS = 1.0
_MOST_NUMBERS = 16
_INFINITE = 1_000_000


def likely_arguments(model: nn.Module, distance: Distance) -> dict[str, Any] | None:
    """The arguments that make a module most like a given one.

    A parameter's value is an attribute of its name, of the model or (where all agree) of the
    modules in it, or its default; a whole number may also be any that the model has as a
    size. One is tried after the other for as long as that brings the copy nearer.

    Args:
        model: The module.
        distance: How far a module made from arguments is from it; may raise.

    Returns:
        The arguments; None where the constructor can't be called by name, might fetch
        something, or needs what nothing tells.
    """
    parameters = _parameters(type(model))
    if parameters is None:
        return None
    options = {p.name: list(_options(model, p)) for p in parameters}
    options = {name: values for name, values in options.items() if values}
    if any(p.default is p.empty and p.name not in options for p in parameters):
        return None
    return _nearest(options, distance)


def _nearest(options: Mapping[str, list[Any]], distance: Distance) -> dict[str, Any] | None:
    best = {name: values[0] for name, values in options.items()}
    least, end = _tried(best, distance), time.process_time() + _MOST_SECONDS
    moved = True
    while least and moved:
        moved = False
        for name, values in options.items():
            for value in values[1:]:
                if time.process_time() > end:
                    return None
                other = {**best, name: value}
                found = _tried(other, distance)
                if found < least:
                    best, least, moved = other, found, True
    return best if least == 0 else None


def _tried(arguments: Mapping[str, Any], distance: Distance) -> int:
    try:
        return distance(arguments)
    except Exception:  # noqa: BLE001 - the constructor refuses them
        return _INFINITE


def _parameters(kind: type[nn.Module]) -> list[inspect.Parameter] | None:
    """What a constructor takes by name; None where it takes what has no name."""
    made_by: Any = kind.__init__
    for function in (*typing.get_overloads(made_by), made_by):
        try:
            _, *parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return None
        kinds = {p.kind for p in parameters}
        if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.POSITIONAL_ONLY in kinds:
            continue
        named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        return None if any(_may_fetch(p) for p in named) else named
    return None


def _may_fetch(parameter: inspect.Parameter) -> bool:
    """Whether a parameter's default may let the constructor reach for files or the network."""
    named = any(clue in parameter.name.lower() for clue in _FETCHES)
    return named and parameter.default not in (None, False, parameter.empty, "")


def _options(model: nn.Module, parameter: inspect.Parameter) -> Iterator[Any]:
    """The values that a parameter may have had, likeliest first."""
    if parameter.name in {"device", "dtype"}:
        return
    default = parameter.default
    told = [*_own(model, parameter), *_agreed(model, parameter)]
    known = [value for value in told if _fits(value, default)]
    if default is None:
        known.insert(0, None)  # what is derived by default follows what it derives from
    elif default is not parameter.empty:
        known.append(default)
    if type(default) is bool:
        known.append(not default)
    if type(default) is int or (default is parameter.empty and not known):
        known += _numbers(model)
    yield from (value for i, value in enumerate(known) if not _in(value, known[:i]))


def _in(value: Any, others: list[Any]) -> bool:
    return any(
        value is other or (type(value) is type(other) is int and value == other) for other in others
    )


def _own(model: nn.Module, parameter: inspect.Parameter) -> Iterator[Any]:
    missing = object()
    for name in (parameter.name, f"_{parameter.name}"):
        value = getattr(model, name, missing)
        if value is missing or inspect.ismethod(value):
            continue
        if type(parameter.default) is bool and not isinstance(value, bool):
            value = value is not None  # `bias`, of which a module keeps the tensor
        if not isinstance(value, torch.Tensor | nn.Module):
            yield value


def _agreed(model: nn.Module, parameter: inspect.Parameter) -> Iterator[Any]:
    """The attribute of the name in the modules within, where all that have it agree."""
    held = [vars(m)[parameter.name] for m in members.modules(model) if parameter.name in vars(m)]
    plain = [value for value in held if type(value) in (int, bool, float, str, tuple)]
    if plain and all(value == plain[0] for value in plain):
        yield plain[0]
    if type(parameter.default) is int or parameter.default is parameter.empty:
        lists = [m for m in members.modules(model) if isinstance(m, nn.ModuleList | nn.Sequential)]
        if any(clue in parameter.name for clue in ("depth", "layers", "blocks", "n_layer")):
            yield from dict.fromkeys(len(found) for found in lists)


def _fits(value: Any, default: Any) -> bool:
    """Whether a value may stand where the default does: `True` is no width."""
    if default is None or default is inspect.Parameter.empty or value is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return type(value) is type(default)
    return isinstance(value, type(default)) or type(default) in (int, float, tuple, list)


def _numbers(model: nn.Module) -> list[int]:
    """The sizes and whole numbers that a model has, those that many parts have first."""
    found: dict[int, int] = {}
    for parameter in members.parameters(model):
        for size in parameter.shape:
            found[size] = found.get(size, 0) + 1
    for module in members.modules(model):
        for name, value in vars(module).items():
            if type(value) is int and value > 0 and not name.startswith("_"):
                found[value] = found.get(value, 0) + 1
    return sorted(found, key=lambda size: -found[size])[:_MOST_NUMBERS]
