"""How a model is made: it is there, it is called for, or it comes from a configuration."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from torch import nn

from shapetrace.capture.target.arguments import (
    Nested,
    defaults_of,
    fields_of,
    kind_of,
    overlaid,
    read_arguments,
)
from shapetrace.capture.target.inputs import plain_signature
from shapetrace.errors import ShapetraceError, did_you_mean


class Recipe(Protocol):
    """How a model is made."""

    @property
    def rebuilds(self) -> bool:
        """Whether it can be made again with other integers."""

    def values(self) -> dict[str, Any]:
        """All that it is made from, defaults included, nested."""

    def make(self, overrides: Mapping[str, int]) -> Any:
        """Make it, with some integers changed."""


@dataclass(frozen=True)
class Ready:
    """A module that exists already."""

    model: nn.Module
    rebuilds: bool = False

    def values(self) -> dict[str, Any]:
        """Nothing is known of what it was made from, but for a configuration it keeps."""
        fields = fields_of(getattr(self.model, "config", None))
        return {} if fields is None else fields

    def make(self, overrides: Mapping[str, int]) -> nn.Module:
        """The module itself.

        Raises:
            ShapetraceError: If anything is to change.
        """
        if overrides:
            raise ShapetraceError("a module that exists already cannot be made at other sizes")
        return self.model


@dataclass(frozen=True)
class Constructed:
    """A class or factory with its arguments.

    Attributes:
        function: What is called.
        given: Keyword arguments; a `Nested` one becomes a configuration object.
    """

    function: Callable[..., Any]
    given: Nested
    rebuilds: bool = True

    def values(self) -> dict[str, Any]:
        """The arguments, with defaults where nothing was given."""
        return _with_defaults(self.function, self.given)

    def make(self, overrides: Mapping[str, int]) -> Any:
        """Call it."""
        base = Nested({**_held(self.values(), overrides), **self.given})
        return self.function(**_made(self.function, overlaid(_own(base), overrides)))


def _own(value: Any) -> Any:
    """Plain containers anew, so that a constructor that empties a list empties only its own."""
    if type(value) in (dict, Nested):
        return type(value)((key, _own(item)) for key, item in value.items())
    return type(value)(map(_own, value)) if type(value) in (list, tuple) else value


def _held(values: Mapping[str, Any], overrides: Mapping[str, int]) -> dict[str, Any]:
    """Defaults of which an override changes a part: they have to be written out."""
    parts = {path.partition(".")[0] for path in overrides if "." in path}
    return {name: value for name, value in values.items() if name in parts}


def _with_defaults(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    found = {**defaults_of(function), **given}
    for name, value in found.items():
        if isinstance(value, Nested):
            kind = kind_of(function, name)
            found[name] = Nested(_with_defaults(kind, value))
        elif fields_of(value) is not None:
            found[name] = Nested(fields_of(value) or {})
    return found


def _made(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with every `Nested` one turned into the object that holds such fields."""
    return {
        name: kind_of(function, name)(**_made(kind_of(function, name), value))
        if isinstance(value, Nested)
        else value
        for name, value in given.items()
    }


def class_recipe(
    function: Callable[..., Any], name: str, given: Nested, option: str
) -> Constructed:
    """The recipe of a class or factory.

    Args:
        function: The class or factory.
        name: What the user called it.
        given: Its arguments.
        option: What they are given by, for errors: ``--arg``, or ``arg`` in Python.

    Raises:
        ShapetraceError: For a missing or unknown argument, with the signature.
    """
    _check_arguments(function, name, given, option)
    return Constructed(function, given)


def _check_arguments(
    function: Callable[..., Any], name: str, given: Nested, option: str, path: str = ""
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    parameters = signature.parameters.values()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes = f"it takes {plain_signature(signature)}"
    for key in given:
        if key not in named and all(p.kind is not p.VAR_KEYWORD for p in parameters):
            hint = did_you_mean(key, named) if named else takes
            raise ShapetraceError(f"{option} {path}{key}: {name} has no such argument: {hint}")
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty and p.name in named and p.name not in given
    ]
    if missing:
        wanted = _example(option, path, missing)
        raise ShapetraceError(f"{name} needs {', '.join(missing)}: give {wanted}; {takes}")
    for key, value in given.items():
        if isinstance(value, Nested):
            kind = kind_of(function, key)
            _check_arguments(kind, getattr(kind, "__name__", key), value, option, f"{path}{key}.")


def _example(option: str, path: str, missing: Sequence[str]) -> str:
    """How missing arguments are given: as options, or as a dict in Python."""
    if option.startswith("-"):
        return " ".join(f"{option} {path}{key}=..." for key in missing)
    found = "{" + ", ".join(f'"{key}": ...' for key in missing) + "}"
    for part in reversed(path.split(".")[:-1]):
        found = f'{{"{part}": {found}}}'
    return f"{option}={found}"


@dataclass(frozen=True)
class Configured:
    """A Hugging Face class with the settings of its configuration.

    Attributes:
        model_class: The class; an ``Auto`` class is built by its ``from_config``.
        config_class: Makes the configuration from keyword arguments.
        given: The settings; everything else is the configuration's default.
    """

    model_class: Any
    config_class: Callable[..., Any]
    given: Nested
    rebuilds: bool = True

    def values(self) -> dict[str, Any]:
        """The configuration, derived and default fields included."""
        found = self._config({}).to_dict()
        return {key: value for key, value in found.items() if not key.startswith("_")}

    def make(self, overrides: Mapping[str, int]) -> Any:
        """Build it from a new configuration, so that derived fields follow what changes."""
        config = self._config(overrides)
        if hasattr(self.model_class, "from_config"):
            return self.model_class.from_config(config)
        return self.model_class(config)

    def _config(self, overrides: Mapping[str, int]) -> Any:
        given = overlaid(self.given, overrides)
        for path in overrides:
            if "." in path and not isinstance(self.given.get(path.partition(".")[0]), Mapping):
                given = overlaid(Nested({**self._parts(path), **self.given}), overrides)
        return self.config_class(**_plain(given))

    def _parts(self, path: str) -> dict[str, Any]:
        """The default of a nested or listed field of which an override changes a part."""
        first = path.partition(".")[0]
        return {first: self.config_class(**_plain(self.given)).to_dict()[first]}


def _plain(value: Any) -> Any:
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def huggingface_recipe(model_class: Any, name: str, texts: Sequence[str]) -> Configured:
    """The recipe of a Hugging Face class.

    Args:
        model_class: A model class with a ``config_class``, or an ``Auto`` class.
        name: What the user called it.
        texts: Each a ``config.json`` or a ``key=value``; later ones win.

    Raises:
        ShapetraceError: For a file that cannot be read, a key that the configuration has
            not, or an ``Auto`` class without a ``model_type``.
    """
    files = [text for text in texts if "=" not in text]
    given = Nested()
    for file in files:
        given.update(_config_file(file))
    given.update(read_arguments([text for text in texts if "=" in text], "--hf-config"))
    config_class = getattr(model_class, "config_class", None)
    if config_class is None:
        config_class = _auto(name, given)
    else:
        _check_fields(name, config_class, given, from_files=bool(files))
    return Configured(model_class, config_class, given)


def _check_fields(name: str, config_class: Any, given: Nested, *, from_files: bool) -> None:
    """A configuration swallows misspelt keys in silence; this does not."""
    if from_files:
        return  # files carry fields of other versions
    default = config_class()
    known = [*default.to_dict(), *getattr(default, "attribute_map", {}), "attn_implementation"]
    for key in given:
        if key not in known and not hasattr(default, key):
            kind = config_class.__name__
            raise ShapetraceError(
                f"--hf-config {key}: {kind} of {name} has no such field: {did_you_mean(key, known)}"
            )


def _auto(name: str, given: Nested) -> Callable[..., Any]:
    from transformers import AutoConfig  # noqa: PLC0415 - only its own classes come here

    model_type = given.pop("model_type", None)
    if model_type is None:
        raise ShapetraceError(f"{name} fits many models: say which by --hf-config model_type=gpt2")

    def make(**settings: Any) -> Any:
        return AutoConfig.for_model(model_type, **settings)

    return make


def _config_file(text: str) -> dict[str, Any]:
    path = Path(text) / "config.json" if Path(text).is_dir() else Path(text)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        _refuse_file(text, error.strerror or str(error))
    except ValueError as error:
        _refuse_file(text, str(error))
    if not isinstance(found, dict):
        _refuse_file(text, "it holds no object")
    return found


def _refuse_file(text: str, reason: str) -> NoReturn:
    raise ShapetraceError(
        f"--hf-config {text}: cannot read it as a configuration: {reason}; "
        "give a config.json or key=value"
    )
