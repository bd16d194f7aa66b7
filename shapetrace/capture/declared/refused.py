"""Which part of a value a type checker refuses: as deep as the annotation follows it."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shapetrace.capture.declared.forms import Form
from shapetrace.capture.declared.shaped import UNIONS, is_array
from shapetrace.check.mismatch import MismatchKind
from shapetrace.dims import dtype_fits, parse_dims
from shapetrace.dims.unify import align

Accepts = Callable[[Form, Any], bool]
"""Whether a value of some form passes for a hint."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The part of a value that does not fit.

    Attributes:
        where: The part in words.
        form: What it is.
        wanted: What is declared there.
        kind: What is wrong.
    """

    where: str
    form: Form
    wanted: str
    kind: MismatchKind


def refused(form: Form, hint: Any, where: str, accepts: Accepts) -> Refused:
    """The innermost part of a value that is refused.

    Args:
        form: The value.
        hint: Its annotation.
        where: The value in words.
        accepts: Asks the type checker, with the names that are bound so far.
    """
    for step, inner, part in parts_of(form, hint):
        if not accepts(inner, part):
            return refused(inner, part, f"{where} {step}", accepts)
    return Refused(where, form, written(hint), _kind(form, hint))


def parts_of(form: Form, hint: Any) -> Iterator[tuple[str, Form, Any]]:
    """The items of a value, each with the hint for it."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        options = [option for option in parts if _same_kind(form, option)]
        if len(options) == 1 and not is_array(options[0]):
            if typing.is_typeddict(options[0]):
                yield "", form, options[0]
            yield from parts_of(form, options[0])
        return
    if not isinstance(origin, type) or not issubclass(form.kind, origin):
        return
    if issubclass(origin, tuple):
        yield from _of_tuple(form, parts)
    elif issubclass(origin, Mapping) and len(parts) > 1:
        for key, item in form.items:
            key_form = key if isinstance(key, Form) else Form(type(key), value=key)
            yield f"key {key!r}", key_form, parts[0]
            yield f"[{key!r}]", item, parts[1]
    elif issubclass(origin, Sequence) and parts:
        for number, item in form.items:
            yield f"[{number}]", item, parts[0]


def _of_tuple(form: Form, parts: tuple[Any, ...]) -> Iterator[tuple[str, Form, Any]]:
    if len(parts) > 1 and parts[-1] is Ellipsis:
        parts = (parts[0],) * len(form.items)
    if len(parts) == len(form.items):
        for (number, item), part in zip(form.items, parts, strict=True):
            yield f"[{number}]", item, part


def _same_kind(form: Form, option: Any) -> bool:
    origin = typing.get_origin(option) or option
    if is_array(option):
        return form.shape is not None
    if typing.is_typeddict(origin):
        return issubclass(form.kind, dict)
    return isinstance(origin, type) and issubclass(form.kind, origin)


def _kind(form: Form, hint: Any) -> MismatchKind:
    if not is_array(hint) or form.shape is None:
        return "form"
    if not issubclass(form.kind, hint.array_type if isinstance(hint.array_type, type) else object):
        return "form"
    if dtype_fits(hint.dtype.__name__, str(form.dtype).removeprefix("torch.")) is False:
        return "dtype"
    return "size" if align(parse_dims(hint.dim_str), form.shape) is not None else "rank"


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
