"""``--arg key=value``: values from text, nested by dots, and the integers among them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from torch import nn

from shapetrace.errors import ShapetraceError


class Nested(dict[str, Any]):
    """Values that dots put under one name: fields of a configuration to be made."""


def read_arguments(texts: Sequence[str], option: str) -> Nested:
    """Read ``key=value`` texts; a value is a Python literal, else the text itself.

    Args:
        texts: One setting each; ``config.n_layer=2`` nests.
        option: The option's name, for errors.

    Raises:
        ShapetraceError: For a text without ``=``, or a key given twice or as both a value
            and a holder of values.
    """
    found = Nested()
    for text in texts:
        key, equals, value = text.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(part.isidentifier() for part in parts):
            raise ShapetraceError(f"{option} {text!r} is not of the form key=value, such as h=4")
        branch = found
        for part in parts[:-1]:
            branch = branch.setdefault(part, Nested())
            if not isinstance(branch, Nested):
                raise ShapetraceError(f"{option} {text!r}: {part} already has a value")
        if parts[-1] in branch:
            raise ShapetraceError(f"{option}: {key.strip()} is given twice")
        branch[parts[-1]] = literal(value.strip())
    return found


def arguments_from(given: Mapping[str, Any], function: Callable[..., Any]) -> Nested:
    """Arguments from Python: a dict is one, but for a parameter that takes an object with fields.

    Args:
        given: Values by the parameter's name.
        function: What they are for.
    """
    found = Nested(given)
    for name, value in given.items():
        if type(value) is dict and takes_fields(function, name):
            found[name] = arguments_from(value, kind_of(function, name))
    return found


def literal(text: str) -> Any:
    """A Python literal's value, or the text itself where it is none."""
    constants = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in constants:
        return constants[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def integers_in(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """The integers in nested values by dotted path; those of lists by index."""
    if type(value) is int:
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from integers_in(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from integers_in(item, f"{path}.{number}")


def overlaid(value: Any, overrides: Mapping[str, int]) -> Any:
    """Nested values with some integers replaced, by dotted path."""
    for path, number in overrides.items():
        value = _with(value, path.split("."), number)
    return value


def _with(value: Any, path: Sequence[str], number: int) -> Any:
    if not path:
        return number
    first, rest = path[0], path[1:]
    if isinstance(value, tuple | list):
        items = list(value)
        items[int(first)] = _with(items[int(first)], rest, number)
        return type(value)(items)
    fields = fields_of(value)
    if fields is not None:
        changed = {first: _with(fields.get(first), rest, number)}
        if isinstance(value, SimpleNamespace):
            return SimpleNamespace(**{**fields, **changed})
        return dataclasses.replace(value, **changed)
    known = value if isinstance(value, Mapping) else {}
    new = {**known, first: _with(known.get(first), rest, number)}
    return Nested(new) if isinstance(value, Nested) or not isinstance(value, Mapping) else new


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The default of each parameter of a function or class that has one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a configuration object; None for a value of another kind."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(vars(value)) if isinstance(value, SimpleNamespace) else None


def kind_of(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What holds the values that dots put under a parameter.

    Its default's class, else its annotation, else the one ``...Config`` class of the
    module, else a plain namespace.
    """
    default = defaults_of(function).get(name)
    if fields_of(default) is not None:
        return type(default)
    annotated = _annotated(function, name)
    if annotated is not None:
        return annotated
    module = inspect.getmodule(function)
    owner = getattr(function, "__name__", "")
    classes = {
        key: value
        for key, value in (vars(module).items() if module is not None else ())
        if isinstance(value, type)
        and not issubclass(value, nn.Module)
        and key.lower().endswith(("config", "args"))
    }
    own = [value for key, value in classes.items() if key.startswith(owner)]
    found = own or list(classes.values())
    return found[0] if len(found) == 1 else SimpleNamespace


def takes_fields(function: Callable[..., Any], name: str) -> bool:
    """Whether a parameter is known to take an object with fields, and no dict."""
    if fields_of(defaults_of(function).get(name)) is not None:
        return True
    classes = _classes(function, name)
    return bool(classes) and not any(issubclass(kind, Mapping) for kind in classes)


def _annotated(function: Callable[..., Any], name: str) -> Callable[..., Any] | None:
    return next(iter(_classes(function, name)), None)


def _classes(function: Callable[..., Any], name: str) -> list[type]:
    """The classes in a parameter's annotation that are no plain values."""
    source = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    try:
        hint = typing.get_type_hints(source).get(name)
    except Exception:  # noqa: BLE001 - annotations may name anything
        return []
    options = [hint, *typing.get_args(hint)]
    classes = [option for option in options if isinstance(option, type)]
    plain = {int, float, str, bool, bytes, list, tuple, type(None), object, Any}
    return [option for option in classes if option not in plain]
