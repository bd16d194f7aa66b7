"""The tensors inside a value, each with its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import nn

SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device})
"""Types that hold no tensor."""
_DEPTH = 4
_WIDTH = 64


class Sizes(dict[tuple[int, ...], tuple[int, ...]]):
    """Plain tuples for `torch.Size`: ``sizes[tensor.shape]`` is one and the same for equal sizes."""

    def __missing__(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Keep sizes that are met for the first time."""
        plain = tuple(size)
        self[plain] = plain
        return plain


def elements(value: Any, path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors inside a container, each with its place: ``[0]``, ``['mask']``, ``.logits``.

    Args:
        value: Anything; what is neither a tensor nor a known container holds none.
        path: The place of `value` itself.
        depth: How many containers deep to look.

    Yields:
        Place and tensor, in order.
    """
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth:
        for place, item in _items(value):
            if isinstance(item, torch.Tensor):
                yield path + place, item
            elif type(item) not in SCALARS:
                yield from elements(item, path + place, depth - 1)


def is_container(kind: type) -> bool:
    """Whether values of a type may hold tensors that can be looked at."""
    return issubclass(kind, tuple | list | dict | torch.Tensor) or (
        dataclasses.is_dataclass(kind) and not issubclass(kind, nn.Module)
    )


def sizes_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """A tensor's sizes; -1 for an axis without a single one, as nested tensors have."""
    try:
        return tuple(size if type(size) is int else -1 for size in tensor.shape)
    except RuntimeError:
        return tuple(_size(tensor, axis) for axis in range(tensor.dim()))


def _size(tensor: torch.Tensor, axis: int) -> int:
    try:
        return tensor.size(axis)
    except RuntimeError:
        return -1


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a container of a kind that can be read without running its code."""
    if isinstance(value, nn.Module):
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name in field_names(type(value)):
            yield f".{name}", stored(value, name)
    elif isinstance(value, dict):
        for key in list(value)[:_WIDTH]:
            yield f"[{key!r}]", dict.__getitem__(value, key)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=False):
            yield f".{name}", item
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value[:_WIDTH]):
            yield f"[{number}]", item


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, in order."""
    return tuple(field.name for field in dataclasses.fields(kind))


def stored(owner: object, name: str) -> object:
    """An attribute's value without running a property or ``__getattr__``."""
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        own = {}
    for table in (own, own.get("_buffers", {}), own.get("_parameters", {})):
        if name in table:
            return table[name]
    return None
