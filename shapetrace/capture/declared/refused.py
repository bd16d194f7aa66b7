"""Which part of a value a type checker refuses: as deep as the annotation follows it."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from beartype.door import is_bearable

from shapetrace.capture.declared.forms import form_of, told
from shapetrace.capture.declared.shaped import UNIONS, is_array
from shapetrace.check.mismatch import MismatchKind
from shapetrace.dims import dtype_fits, parse_dims
from shapetrace.dims.unify import align


@dataclass(frozen=True, slots=True)
class Refused:
    """The part of a value that does not fit.

    Attributes:
        where: The part in words.
        observed: What it is, in words.
        wanted: What is declared there.
        kind: What is wrong.
    """

    where: str
    observed: str
    wanted: str
    kind: MismatchKind


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a hint says: by beartype, and each item of a container too.

    Of a list beartype looks at one item alone, another one each time.
    """
    if not is_bearable(value, hint):
        return False
    return all(fits(item, part) for _, item, part in hinted_items(value, hint))


def refused(value: Any, hint: Any, where: str) -> Refused:
    """The innermost part of a value that is refused.

    Args:
        value: The value.
        hint: Its annotation.
        where: The value in words.
    """
    for step, item, part in hinted_items(value, hint):
        if not _passes(item, part):
            return refused(item, part, f"{where} {step}")
    return Refused(where, told(form_of(value)), written(hint), _kind(value, hint))


def _passes(value: Any, hint: Any) -> bool:
    try:
        return fits(value, hint)
    except Exception:  # noqa: BLE001 - then it is not what is refused
        return True


def hinted_items(value: Any, hint: Any) -> Iterator[tuple[str, Any, Any]]:
    """The items of a value, each with the hint for it; of a union, by its only fitting form."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        options = [option for option in parts if _same_kind(value, option)]
        if len(options) == 1 and not is_array(options[0]):
            if typing.is_typeddict(options[0]):
                yield "", value, options[0]
            yield from hinted_items(value, options[0])
        return
    if not isinstance(origin, type) or not isinstance(value, origin):
        return
    if issubclass(origin, tuple) and isinstance(value, tuple):
        yield from _of_tuple(value, parts)
    elif issubclass(origin, Mapping) and isinstance(value, dict) and len(parts) > 1:
        for key in list(value):
            yield f"key {key!r}", key, parts[0]
            yield f"[{key!r}]", dict.__getitem__(value, key), parts[1]
    elif issubclass(origin, Sequence) and isinstance(value, tuple | list) and parts:
        for number, item in enumerate(value):
            yield f"[{number}]", item, parts[0]


def _of_tuple(value: tuple[Any, ...], parts: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
    if len(parts) > 1 and parts[-1] is Ellipsis:
        parts = (parts[0],) * len(value)
    if len(parts) == len(value):
        for number, (item, part) in enumerate(zip(value, parts, strict=True)):
            yield f"[{number}]", item, part


def _same_kind(value: Any, option: Any) -> bool:
    origin = typing.get_origin(option) or option
    if option is Any:
        return True
    if is_array(option):
        return isinstance(value, torch.Tensor)
    if typing.is_typeddict(origin):
        return isinstance(value, dict)
    return isinstance(origin, type) and isinstance(value, origin)


def _kind(value: Any, hint: Any) -> MismatchKind:
    if not is_array(hint) or not isinstance(value, torch.Tensor):
        return "form"
    if isinstance(hint.array_type, type) and not isinstance(value, hint.array_type):
        return "form"
    if dtype_fits(hint.dtype.__name__, str(value.dtype).removeprefix("torch.")) is False:
        return "dtype"
    return "size" if align(parse_dims(hint.dim_str), tuple(value.shape)) is not None else "rank"


def written(hint: Any) -> str:
    """A hint as a person would write it."""
    if is_array(hint):
        return f'{hint.dtype.__name__}[{_name(hint.array_type)}, "{hint.dim_str}"]'
    parts = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in UNIONS:
        return " | ".join(written(part) for part in parts)
    if not parts:
        return "None" if hint is type(None) else _name(hint)
    return f"{_name(origin)}[{', '.join(written(part) for part in parts)}]"


def _name(hint: Any) -> str:
    return "..." if hint is Ellipsis else str(getattr(hint, "__qualname__", hint))
