"""The model to be traced, and how to make it again at other sizes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.target.argument_types import misfitting
from shapetrace.capture.target.arguments import (
    arguments_from,
    integers_in,
    read_arguments,
)
from shapetrace.capture.target.given import check_arg
from shapetrace.capture.target.inputs import CallInputs, from_specs
from shapetrace.capture.target.instances import (
    apart,
    name_axes,
    resized_inputs,
    weightless_copy,
    with_loose,
)
from shapetrace.capture.target.loading import load_object
from shapetrace.capture.target.recipes import (
    Configured,
    Ready,
    Recipe,
    class_recipe,
    huggingface_recipe,
)
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.values import members
from shapetrace.capture.weightless.modes import makes_real_tensors
from shapetrace.errors import ShapetraceError, with_article

Scalar = int | float | bool | str | None


@dataclass(frozen=True)
class Target:
    """A model, by what makes it.

    Attributes:
        name: What the user called it.
        recipe: How it is made.
        dtype: Of its floating-point weights; ``auto`` for those that it is made with.
        option: What its arguments are given by, for errors: ``arg`` in Python.
    """

    name: str
    recipe: Recipe
    dtype: str = "auto"
    option: str = "--arg"

    @property
    def rebuilds(self) -> bool:
        """Whether `build` honours other integers."""
        return self.recipe.rebuilds

    @property
    def weights(self) -> str:
        """What is known of its weights: only from a configuration alone are they sure random."""
        match self.recipe:
            case Configured():
                return "random weights"
            case Ready():
                return "weights as the model has them"
        return "weights as they are made"

    def integers(self) -> dict[str, int]:
        """The integers that it is made from, constructor defaults included, by dotted name."""
        return dict(integers_in(self.recipe.values()))

    def config(self) -> dict[str, Scalar]:
        """What it is made from, as far as that is numbers and strings."""
        values = self.recipe.values()
        if isinstance(self.recipe, Configured):
            values = {key: value for key, value in values.items() if key in self.recipe.given}
        return dict(_scalars(values))

    def build(
        self, overrides: Mapping[str, int] | None = None, *, device: str = "", seed: int = 0
    ) -> nn.Module:
        """Make the model; the global random state is left as it was.

        Args:
            overrides: Integers to change, by the names of `integers`.
            device: Where it ends up; the current default device when empty. For ``meta`` it
                is made without weights where its constructor can run so.
            seed: Of its random weights.

        Raises:
            ShapetraceError: When making it fails, or makes something that is no module.
        """
        with same_random_state(seed), _explained(self):
            if device == "meta":
                return self._converted(_weightless(self, overrides or {}))
            made = self._converted(_checked(self.name, self.recipe.make(overrides or {})))
            return members.moved(made, device) if device else made

    def _converted(self, model: nn.Module) -> nn.Module:
        """The model with its weights of the dtype that is asked for."""
        if self.dtype == "auto":
            return model
        return nn.Module.to(model, getattr(torch, self.dtype))

    def subject(
        self, inputs: CallInputs, dims: Mapping[str, int] | None = None, **options: Any
    ) -> Subject:
        """What the naming probes need: how to make the model and its inputs at other sizes.

        Args:
            inputs: Of the real run.
            dims: For inputs that came with their values, names of their axes by size; when
                None, they are guessed by position. A name whose size no input has is a size
                of the model's own.
            options: Further fields of the `Subject`.
        """
        specs = inputs.specs
        axes, sizes = ({}, dict(specs.sizes)) if specs is not None else name_axes(inputs, dims)
        loose = specs.loose() if specs is not None and self.rebuilds else {}
        if specs is None and self.rebuilds:
            axes, loose = with_loose(inputs, axes)
        guessed = specs is None and dims is None
        taken = dict.fromkeys(sizes, 0) if guessed else sizes
        ready = self.recipe.make({}) if isinstance(self.recipe, Ready) else None
        own = self.integers() if self.rebuilds else {}
        names = {apart(name, size, taken): name for name, size in own.items()}
        known = {label: own[name] for label, name in names.items()}

        def build(given: Mapping[str, int]) -> nn.Module:
            if ready is not None:
                return weightless_copy(ready)
            sizes = {names.get(label, label): size for label, size in given.items()}
            changed = {key: size for key, size in sizes.items() if own.get(key, size) != size}
            try:  # written out, what is derived by default stays, and one size moves alone
                return members.set_training(self.build(sizes), mode=False)
            except ShapetraceError:
                return members.set_training(self.build(changed), mode=False)

        def arguments(dims: Mapping[str, int], _: Mapping[str, int]) -> CallInputs:
            if specs is None:
                return resized_inputs(inputs, axes, dims)
            return from_specs(specs.resized(dims), weightless=not makes_real_tensors())

        return Subject(
            known,
            sizes,
            build,
            arguments,
            rebuilt=self.rebuilds,
            guessed=dict.fromkeys(sizes, guessed),
            loose=loose,
            given={name: size for name, size in (dims or {}).items() if name not in sizes},
            **options,
        )


def resolve(text: str, arguments: Sequence[str] = (), hf_config: Sequence[str] = ()) -> Target:
    """Find a target and read what it is to be made from.

    Args:
        text: ``package.module:Class``, ``package.module:factory`` or
            ``path/to/file.py:thing``; the thing may be a module that exists.
        arguments: ``key=value`` arguments of the constructor or factory.
        hf_config: For a Hugging Face class, a ``config.json`` or ``key=value`` fields.

    Raises:
        ShapetraceError: If there is no such thing, it makes no module, or the arguments do
            not fit it.
    """
    found = load_object(text)
    given = read_arguments(arguments, "--arg")
    if isinstance(found, nn.Module):
        if given or hf_config:
            raise ShapetraceError(f"{text} is a module that exists already and takes no --arg")
        return Target(text, Ready(found))
    _check_makes(found, text)
    if _is_configured(found) and not given:
        return Target(text, huggingface_recipe(found, text, hf_config))
    if hf_config:
        raise ShapetraceError(
            f"--hf-config is for Hugging Face classes, and {text} has no config_class; use --arg"
        )
    return Target(text, class_recipe(found, text, given, "--arg"))


def made_from(found: Any, arg: Mapping[str, Any]) -> Target:
    """The target of a class or factory that Python code has, as `resolve` makes one from text.

    Args:
        found: The class or factory.
        arg: Its arguments by name; a dict for a parameter that takes a configuration object
            gives the fields of it.

    Raises:
        ShapetraceError: If it makes no module, or the arguments do not fit it.
    """
    check_arg(arg)
    name = getattr(found, "__name__", type(found).__name__)
    if isinstance(found, nn.Module):
        raise ShapetraceError(f"the model, a {name}, exists already and takes no arg")
    _check_makes(found, name)
    if _is_configured(found) and not arg:
        return Target(name, huggingface_recipe(found, name, ()), option="arg")
    given = arguments_from(arg, found)
    return Target(name, class_recipe(found, name, given, "arg"), option="arg")


def _check_makes(found: Any, name: str) -> None:
    if not _makes_modules(found):
        raise ShapetraceError(
            f"{name} is {_described(found)}, neither an nn.Module nor a function that makes one"
        )


def _is_configured(found: Any) -> bool:
    return getattr(found, "config_class", None) is not None or _is_auto(found)


def _makes_modules(found: Any) -> bool:
    if isinstance(found, type):
        return issubclass(found, nn.Module) or _is_auto(found)
    return callable(found)


def _is_auto(found: Any) -> bool:
    return isinstance(found, type) and hasattr(found, "_model_mapping")


def _described(found: Any) -> str:
    name = type(found).__name__
    kind = f"the class {found.__name__}" if isinstance(found, type) else with_article(name)
    return "a module of code" if inspect.ismodule(found) else kind


def _weightless(target: Target, overrides: Mapping[str, int]) -> nn.Module:
    try:
        with torch.device("meta"):
            return members.moved(_checked(target.name, target.recipe.make(overrides)), "meta")
    except (NotImplementedError, RuntimeError):  # a constructor that looks at values
        return members.moved(_checked(target.name, target.recipe.make(overrides)), "meta")


def _checked(name: str, made: Any) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise ShapetraceError(f"{name} made {_described(made)}, not an nn.Module")
    return made


@contextmanager
def _explained(target: Target) -> Iterator[None]:
    name, shown = target.name, " (--debug shows where)" if target.option == "--arg" else ""
    try:
        yield
    except ShapetraceError:
        raise
    except SystemExit as error:
        raise ShapetraceError(f"making {name} calls sys.exit({error.code!r})") from error
    except Exception as error:
        misfit = misfitting(target.recipe, target.option)
        if misfit:
            reason = f"making {name} with it raised {type(error).__name__}{shown}"
            raise ShapetraceError(f"{misfit}; {reason}") from error
        raise ShapetraceError(
            f"making {name} raised {type(error).__name__}: {error}{shown}"
        ) from error


def _scalars(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Scalar]]:
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _scalars(value, name)
        elif value is None or type(value) in (int, float, bool, str):
            yield name, value
