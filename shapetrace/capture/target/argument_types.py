"""Arguments from the command line that are not of the kind that a model is made from."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any

from shapetrace.capture.target.arguments import Nested, defaults_of, kind_of
from shapetrace.capture.target.recipes import Configured, Constructed, Recipe
from shapetrace.errors import with_article

_PLAIN = (bool, int, float, str, list, tuple, dict)


def misfitting(recipe: Recipe, option: str) -> str:
    """The first given argument that is of another kind than its annotation or default.

    Args:
        recipe: What the model is made by.
        option: What arguments are given by, for the message: ``--arg``.

    Returns:
        What was given and what is expected, for an error message; empty when all seem to
        fit, or nothing is known of what is expected.
    """
    match recipe:
        case Constructed(function=function, given=given):
            return next(_of_call(function, given, f"{option} "), "")
        case Configured(config_class=kind, given=given):
            return next(_of_config(kind, given), "")
    return ""


def _of_call(function: Callable[..., Any], given: Mapping[str, Any], path: str) -> Iterator[str]:
    defaults = defaults_of(function)
    for name, value in given.items():
        if isinstance(value, Nested):
            yield from _of_call(kind_of(function, name), value, f"{path}{name}.")
            continue
        wanted = _annotated(function, name)
        if not wanted and name in defaults:
            wanted = _kinds_like(defaults[name])
        if wanted and not _fits(value, wanted):
            yield _misfit(f"{path}{name}", value, wanted)
        elif not wanted and isinstance(value, str):
            yield f"{path}{name} is the text {value!r}"


def _of_config(kind: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[str]:
    try:
        defaults = kind().to_dict()
    except Exception:  # noqa: BLE001 - a configuration with no defaults of its own
        return
    for name, value in given.items():
        wanted = _kinds_like(defaults.get(name))
        if wanted and not isinstance(value, Mapping) and not _fits(value, wanted):
            yield _misfit(f"--hf-config {name}", value, wanted)


def _misfit(place: str, value: object, wanted: tuple[type, ...]) -> str:
    kinds = " or ".join(with_article(kind.__name__) for kind in wanted)
    given = "text" if isinstance(value, str) else with_article(type(value).__name__)
    return f"{place}={value}: expected {kinds}, not {given}"


def _kinds_like(default: object) -> tuple[type, ...]:
    """What a default lets one expect; nothing of None."""
    return tuple(kind for kind in _PLAIN if type(default) is kind)


def _annotated(function: Callable[..., Any], name: str) -> tuple[type, ...]:
    """The plain kinds that an annotation admits; none where it names anything else."""
    source = function.__init__ if inspect.isclass(function) else function
    try:
        hint = typing.get_type_hints(source).get(name)
    except Exception:  # noqa: BLE001 - annotations may name anything
        return ()
    options = typing.get_args(hint) if hint not in _PLAIN else (hint,)
    kinds = tuple(option for option in options if option in (*_PLAIN, NoneType))
    return kinds if len(kinds) == len(options) else ()


def _fits(value: object, wanted: tuple[type, ...]) -> bool:
    """Whether a value is of one of the kinds; an int is as good as a float, a list as a tuple."""
    near = {int: (int, float), list: (list, tuple), tuple: (list, tuple)}
    return any(kind in wanted for kind in near.get(type(value), (type(value),)))
