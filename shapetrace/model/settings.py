"""Values of settings: fields checked against their type or parsed from text, and seeds."""

from __future__ import annotations

from math import isfinite
from types import NoneType, UnionType
from typing import Literal, get_args, get_origin

from shapetrace.model.errors import ModelError, did_you_mean

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_NONE = ("none", "null", "")
_LONGEST_SHOWN = 60
SEEDS = 1 << 64
"""As many as torch's generators take: one range for weights, inputs, draws and training."""


def checked(name: str, value: object, kind: object) -> object:
    """The value, if the field can take it (an int becomes a float where one is due).

    Raises:
        ModelError: The value has the wrong type, or is not one of the choices.
    """
    if get_origin(kind) is Literal:
        return _choice(name, value, get_args(kind))
    if isinstance(kind, UnionType):
        if value is None:
            return None
        return checked(name, value, _inner(kind))
    if kind is float and type(value) is int:
        return _finite(name, _as_float(value))
    if type(value) is not kind:
        raise ModelError(f"`{name}` is {_shown(value)}; it must be {_words(kind)}")
    return _finite(name, value) if isinstance(value, float) else value


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _finite(name: str, value: float) -> float:
    """The number, unless no arithmetic makes sense with it (and JSON cannot write it)."""
    if not isfinite(value):
        raise ModelError(f"`{name}` is {value}; it must be a finite number")
    return value


def parsed(name: str, text: str, kind: object) -> object:
    """The value that the text stands for in a field of this type.

    Raises:
        ModelError: The text does not stand for one.
    """
    if isinstance(kind, UnionType):
        return None if text.lower() in _NONE else parsed(name, text, _inner(kind))
    if get_origin(kind) is Literal:
        return _choice(name, text, get_args(kind))
    if kind is bool and text.lower() in _TRUE + _FALSE:
        return text.lower() in _TRUE
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        pass
    raise ModelError(f"`{name}` is {_shown(text)}; it must be {_words(kind)}")


def _choice(name: str, value: object, choices: tuple[str, ...]) -> object:
    if value in choices:
        return value
    hint = did_you_mean(str(value), choices)
    tail = "" if hint.startswith("known") else f" ({hint})"
    raise ModelError(f"`{name}` is {_shown(value)}; allowed: {', '.join(choices)}{tail}")


def _shown(value: object) -> str:
    """A value as an error shows it: all of it, unless it is very long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _inner(kind: object) -> object:
    return next(option for option in get_args(kind) if option is not NoneType)


def _words(kind: object) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, str(kind)) if isinstance(kind, type) else str(kind)


def check_seed(seed: int) -> None:
    """Refuse a seed that torch cannot take.

    Raises:
        ModelError: Naming the range.
    """
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise ModelError(f"seed {seed!r}: give a whole number from 0 to {SEEDS - 1}")
