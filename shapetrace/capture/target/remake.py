"""A live model made again at other sizes: from its configuration, or by its class.

Nothing keeps what a module was made from. A configuration that it carries may tell, or the
attributes and sizes that its constructor left behind. Either is only a guess until a copy
made from it is equal: the same modules, parameters, buffers and whole numbers everywhere.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.target.arguments import integers_in
from shapetrace.capture.target.constructor import likely_arguments
from shapetrace.capture.target.unheard import unheard
from shapetrace.capture.values import members

Facts = frozenset[tuple[object, ...]]
"""All of a model that does not hang on its weights' values, as far as it decides sizes."""
Make = Callable[[Mapping[str, int]], nn.Module]


@dataclass(frozen=True)
class Remake:
    """How to make a model again.

    Attributes:
        integers: The whole numbers that it is made from, by dotted name.
        make: Makes it with some of them changed, on whatever device is current.
    """

    integers: Mapping[str, int]
    make: Make


def remake(model: nn.Module) -> Remake | None:
    """Find out how a model can be made again; the model is only looked at.

    Args:
        model: The live model.

    Returns:
        How; None where no copy that is equal to it could be made.
    """
    if _is_touched(model):
        return None
    facts = facts_of(model)
    with _aside():
        for found in (_by_configuration(model), *_by_constructor(model, facts)):
            if found is not None and found.integers and _makes(found, facts):
                return found
    return None


def _makes(found: Remake, facts: Facts) -> bool:
    try:
        return facts_of(found.make({})) == facts
    except Exception:  # noqa: BLE001 - a guess that was wrong
        return False


def facts_of(model: nn.Module) -> Facts:
    """The modules, the shapes of parameters and buffers, and the whole numbers of a model."""
    found: set[tuple[object, ...]] = set()
    for path, module in members.named_modules(model, remove_duplicate=False):
        found.add((path, type(module)))
        found.update((path, name, value) for name, value in vars(module).items() if _sizes(value))
    tensors = (*members.named_parameters(model), *members.named_buffers(model))
    found.update((path, tuple(tensor.shape)) for path, tensor in tensors)
    return frozenset(found)


def _sizes(value: object) -> bool:
    """Whether an attribute may decide a size: a whole number, or several."""
    if type(value) in (list, tuple):
        return type(value) is tuple and all(type(item) is int for item in value)
    return type(value) is int


def _is_touched(model: nn.Module) -> bool:
    """Whether a module does more than its class says: no copy made anew would do that."""
    return any(
        module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)  # noqa: SLF001 - there is no other way to know
        for module in members.modules(model)
    )


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Without weights, words or a trace in the random generators."""
    with unheard(), same_random_state(), torch.device("meta"), torch.no_grad():
        yield


def _by_configuration(model: nn.Module) -> Remake | None:
    """Of a library whose models are made from the one configuration that they carry."""
    config = getattr(model, "config", None)
    kind: Any = type(model)
    if isinstance(config, Mapping) and callable(getattr(kind, "from_config", None)):
        fields = {key: value for key, value in config.items() if not key.startswith("_")}
        return Remake(
            dict(integers_in(fields)),
            lambda changes: kind.from_config(with_integers(dict(config), changes)),
        )
    if getattr(kind, "config_class", None) is None or not callable(
        getattr(config, "to_dict", None)
    ):
        return None
    fields = {key: value for key, value in config.to_dict().items() if not key.startswith("_")}  # type: ignore[union-attr]
    return Remake(
        dict(integers_in(fields)),
        lambda changes: kind(with_integers(copy.deepcopy(config), changes)),
    )


def _by_constructor(model: nn.Module, facts: Facts) -> Iterator[Remake]:
    """Of a class whose constructor's arguments can be told from what it left behind."""
    kind = type(model)
    given = likely_arguments(model, lambda made: len(facts ^ facts_of(kind(**made))))
    if given is not None:
        yield Remake(
            dict(integers_in(_plain(given))),
            lambda changes: kind(**with_integers(dict(given), changes)),
        )


def _plain(value: Any) -> Any:
    """Values with each configuration object as its fields."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, type | nn.Module | torch.Tensor) or callable(value):
        return None
    return _plain(vars(value)) if hasattr(value, "__dict__") else value


def with_integers(value: Any, changes: Mapping[str, int]) -> Any:
    """Nested values and objects with some integers replaced; what holds them is copied.

    Args:
        value: A mapping, a list or an object with attributes.
        changes: The integers, by dotted path.
    """
    for path, number in changes.items():
        value = _replaced(value, path.split("."), number)
    return value


def _replaced(value: Any, path: list[str], number: int) -> Any:
    if not path:
        return number
    first, *rest = path
    if isinstance(value, Mapping):
        key = first if first in value else next(k for k in value if str(k) == first)
        return {**value, key: _replaced(value[key], rest, number)}
    if isinstance(value, tuple | list):
        items = list(value)
        items[int(first)] = _replaced(items[int(first)], rest, number)
        return type(value)(items)
    new = _replaced(getattr(value, first), rest, number)
    made = copy.copy(value)
    object.__setattr__(made, first, new)  # what derives from it stays: one size moves alone
    return made
