"""What a value is, without its numbers: enough to build another that type checkers judge alike."""

from __future__ import annotations

import dataclasses
import enum
import types
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from shapetrace.capture.values.tensors_in import SCALARS, sizes_of, stored
from shapetrace.dims import short_dtype

_DEPTH = 6
_WIDTH = 1024
_PLAIN = SCALARS | {range}


class UnlikeError(Exception):
    """A value of which no likeness can be made: a type checker might judge it otherwise."""


@dataclass(frozen=True, slots=True)
class ValueForm:
    """One value: its class, and what is in it.

    Attributes:
        kind: Its class; `nn.Parameter` for anything that passes for one.
        shape: A tensor's sizes; None for anything else.
        dtype: A tensor's.
        items: What a container holds, by key, number or field.
        value: A scalar, a class or a member of an enumeration itself.
        whole: Whether a likeness of it can be made.
    """

    kind: type
    shape: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    items: tuple[tuple[Any, ValueForm], ...] = ()
    value: Any = None
    whole: bool = True


def form_of(value: Any, depth: int = _DEPTH) -> ValueForm:
    """The form of a value; no code of the value's own is run."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        plain = value.layout is torch.strided and not value.is_nested
        kind = nn.Parameter if isinstance(value, nn.Parameter) else kind
        return ValueForm(kind, sizes_of(value), value.dtype, whole=plain)
    if kind in _PLAIN or isinstance(value, enum.Enum | type):
        return ValueForm(kind, value=value)
    if isinstance(value, nn.Module):
        return ValueForm(kind)
    if isinstance(value, dict):
        return _container(kind, [(k, dict.__getitem__(value, k)) for k in list(value)], depth)
    if isinstance(value, tuple | list):
        return _container(kind, list(enumerate(value)), depth)
    if dataclasses.is_dataclass(value):
        fields = [(field.name, stored(value, field.name)) for field in dataclasses.fields(value)]
        return _container(kind, fields, depth)
    return ValueForm(kind)


def _container(kind: type, items: list[tuple[Any, Any]], depth: int) -> ValueForm:
    if not depth or len(items) > _WIDTH:
        return ValueForm(kind, whole=False)
    inside = tuple((_key(key), form_of(item, depth - 1)) for key, item in items)
    return ValueForm(kind, items=inside, whole=all(form.whole for _, form in inside))


def _key(key: Any) -> Any:
    """A key of a mapping; a tensor or an object is its form, so that nothing is kept alive."""
    return key if type(key) in _PLAIN or isinstance(key, enum.Enum) else form_of(key, 1)


def likeness(form: ValueForm) -> Any:
    """A value of some form, its tensors without numbers.

    Raises:
        UnlikeError: For an object that can't be made without its own code.
    """
    if not form.whole:
        raise UnlikeError(form.kind.__qualname__)
    if form.shape is not None:
        return _tensor(form)
    if is_plain(form):
        return form.value
    if issubclass(form.kind, types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return lambda *_, **__: None
    items = [(likeness(k) if isinstance(k, ValueForm) else k, likeness(v)) for k, v in form.items]
    try:
        return _made(form.kind, items)
    except Exception as error:
        raise UnlikeError(form.kind.__qualname__) from error


def is_plain(form: ValueForm) -> bool:
    """Whether a form holds the value itself: a scalar, a class, a member of an enumeration."""
    return form.kind in _PLAIN or isinstance(form.value, enum.Enum | type)


def _tensor(form: ValueForm) -> torch.Tensor:
    assert form.shape is not None  # noqa: S101 - the caller's to see
    tensor = torch.empty(form.shape, dtype=form.dtype, device="meta")
    if form.kind is torch.Tensor:
        return tensor
    if issubclass(form.kind, nn.Parameter):
        return nn.Parameter(tensor, requires_grad=False)
    kind: Any = form.kind
    try:
        made: torch.Tensor = tensor.as_subclass(kind)
    except Exception as error:
        raise UnlikeError(form.kind.__qualname__) from error
    return made


def _made(kind: type, items: list[tuple[Any, Any]]) -> Any:
    """An object of a class, without running its ``__init__``."""
    made: Any
    if issubclass(kind, dict):
        made = dict.__new__(kind)
        for key, value in items:
            dict.__setitem__(made, key, value)
        return made
    if issubclass(kind, tuple):
        return tuple.__new__(kind, [value for _, value in items])
    if issubclass(kind, list):
        made = list.__new__(kind)
        list.extend(made, [value for _, value in items])
        return made
    made = object.__new__(kind)
    for name, value in items:
        object.__setattr__(made, name, value)
    return made


def told(form: ValueForm) -> str:
    """A form in words: ``f32[2, 5]``, ``a tuple of 2``, ``None``."""
    if form.shape is not None:
        dtype = short_dtype(str(form.dtype).removeprefix("torch."))
        return f"{dtype}[{', '.join(map(str, form.shape))}]"
    if form.kind is type(None):
        return "None"
    name = form.kind.__qualname__
    if issubclass(form.kind, tuple | list) and not hasattr(form.kind, "_fields"):
        return f"a {name} of {len(form.items)}"
    if issubclass(form.kind, dict):
        keys = ", ".join(repr(key) for key, _ in form.items[:4])
        return f"a {name} with {keys}" if keys else f"an empty {name}"
    return f"{name} {form.value!r}" if form.kind in _PLAIN else f"a {name}"
