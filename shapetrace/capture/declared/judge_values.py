"""jaxtyping's and beartype's verdict on whole values, and in words what they refuse.

Each call has a context of its own, as under `jaxtyped`; so has each object with annotated
fields. Values are judged by their likeness: same classes, keys and sizes, no numbers.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import jaxtyped

from shapetrace.capture.declared.forms import UnlikeError, ValueForm, form_of, is_plain, likeness
from shapetrace.capture.declared.refused import Refused, fits, hinted_items, refused
from shapetrace.capture.declared.shaped import (
    UNIONS,
    Shaped,
    forget,
    is_array,
    replaced,
    shaped_class,
)
from shapetrace.capture.declared.watch_values import YIELD, ValueWatcher
from shapetrace.capture.source.live_functions import functions_of
from shapetrace.capture.source.registry import is_internal
from shapetrace.check.misfit import AnnotationPlace, Misfit, Unchecked


@dataclass(slots=True)
class Judged:
    """What judging came to.

    Attributes:
        misfits: What is refused.
        places: The annotations that values were compared with.
        values: How many values were.
        unlike: Annotations of whose values no likeness can be made, and why.
        unchecked: Annotations that no value was compared with.
    """

    misfits: list[Misfit] = field(default_factory=list)
    places: set[AnnotationPlace] = field(default_factory=set)
    values: int = 0
    unlike: dict[AnnotationPlace, str] = field(default_factory=dict)
    unchecked: list[Unchecked] = field(default_factory=list)


def judged(watcher: ValueWatcher) -> Judged:
    """The verdict on everything that a watcher saw."""
    result = Judged()
    for call, times in watcher.calls.items():
        with jaxtyped("context"):
            for name, form in call.values:
                for asked in _asked(call.function, name, form):
                    _judge(result, call.function, asked, times)
    for (kind, form), times in watcher.objects.items():
        shaped = shaped_class(kind)
        if shaped is not None:
            _judge_fields(result, shaped, form, times)
    result.unchecked = list(_unchecked(watcher, result))
    return result


def _judge_fields(result: Judged, shaped: Shaped, form: ValueForm, times: int) -> None:
    names = getattr(form.kind, "_fields", ())
    with jaxtyped("context"):
        for key, item in form.items:
            name = names[key] if names else key
            if name in shaped.hints:
                asked = Asked(name, f"field `{name}`", item, shaped.hints[name])
                _judge(result, shaped, asked, times)


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that is to be judged.

    Attributes:
        name: The parameter, the field, ``yield`` or ``return``.
        where: The same in words.
        form: The value.
        hint: Its annotation.
    """

    name: str
    where: str
    form: ValueForm
    hint: Any


def _asked(function: Shaped, name: str, form: ValueForm) -> Iterator[Asked]:
    """What is to be judged of a value: itself, or each item of ``*args``."""
    if name == YIELD:
        hint = _yielded(function.hints.get("return"))
        if hint is not None:
            yield Asked("return", "what is yielded", form, hint)
        return
    hint = function.hints[name]
    place = "return value" if name == "return" else f"argument `{name}`"
    if name in function.optional and form.kind is type(None):
        return  # left out, and no type checker looks at defaults
    if name not in function.variadic:
        yield Asked(name, place, form, hint)
        return
    for key, item in form.items:
        yield Asked(name, f"argument `{name}[{key!r}]`", item, hint)


def _yielded(hint: Any) -> Any:
    """What a generator function promises to yield; None for nothing that speaks of it."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    return parts[0] if origin is not None and origin not in UNIONS and parts else None


def _judge(result: Judged, owner: Shaped, asked: Asked, times: int) -> None:
    place, form = owner.place(asked.name), asked.form
    hint = _without_braces(asked.hint)
    foreign = next(_foreign(form, hint), "")
    if foreign:
        result.unlike[place] = f"holds a {foreign}, of which only the value itself tells the sizes"
        return
    try:
        value = likeness(form)
    except UnlikeError as error:
        result.unlike[place] = f"holds a {error}, of which no likeness can be made"
        return
    try:
        holds = fits(value, hint)
    except Exception:  # noqa: BLE001 - an expression that nothing binds: told where tensors are
        holds = None
    result.places.add(place)
    result.values += form.shape is None  # a lone tensor is counted where it was recorded
    for kind, inner in _typed_dicts(value, hint):
        shaped = shaped_class(kind)
        if shaped is not None:
            _judge_fields(result, shaped, form_of(inner), times)
    if holds is False:
        why = refused(value, hint, asked.where)
        result.misfits.append(_misfit(place, why, times))


def _misfit(place: AnnotationPlace, why: Refused, times: int) -> Misfit:
    fix = "pass" if place.name != "return" else "return"
    return Misfit(
        kind=why.kind,
        file=place.file,
        line=place.line,
        function=place.function,
        name=place.name,
        reasons=(
            f"{why.where} of `{place.function}` is {why.observed}, but {why.wanted} is declared",
        ),
        observed=why.observed,
        annotated=why.wanted,
        fix=f"{fix} what is declared, or correct the annotation",
        calls=times,
    )


def _typed_dicts(value: Any, hint: Any) -> Iterator[tuple[type, dict[Any, Any]]]:
    """The mappings in a value that are declared to be typed dicts."""
    if typing.is_typeddict(hint) and isinstance(value, dict):
        yield hint, value
        return
    for _, inner, part in hinted_items(value, hint):
        yield from _typed_dicts(inner, part)


def _foreign(form: ValueForm, hint: Any) -> Iterator[str]:
    """Objects in a value that only their own code could tell the sizes of."""
    if any(issubclass(kind, torch.Tensor) is False for kind in _array_types(hint)):
        yield from _objects(form)


def _array_types(hint: Any) -> Iterator[type]:
    if is_array(hint):
        if isinstance(hint.array_type, type):
            yield hint.array_type
        return
    for part in typing.get_args(hint):
        yield from _array_types(part)


def _objects(form: ValueForm) -> Iterator[str]:
    if form.shape is None and not form.items and not is_plain(form):
        yield form.kind.__qualname__
    for _, item in form.items:
        yield from _objects(item)


def _without_braces(hint: Any) -> Any:
    """A hint whose axes in braces, which only the call's arguments tell, say nothing."""
    return replaced(hint, _open) if _has_braces(hint) else hint


@functools.lru_cache(maxsize=1024)
def _open(array: Any) -> Any:
    return array.dtype[array.array_type, "..."] if "{" in array.dim_str else array


def _has_braces(hint: Any) -> bool:
    if is_array(hint):
        return "{" in hint.dim_str
    return any(_has_braces(part) for part in typing.get_args(hint))


def _unchecked(watcher: ValueWatcher, result: Judged) -> Iterator[Unchecked]:
    """The annotations that no value of a run was compared with, in order."""
    ran = {(call.function.file, call.function.name) for call in watcher.calls}
    for key, shaped in watcher.functions.items():
        for name in shaped.hints:
            place = shaped.place(name)
            if place in result.places:
                continue
            if key in watcher.asynchronous:
                reason = "is in an async function, which is not looked into"
            elif (shaped.file, shaped.name) not in ran:
                reason = "did not run"
            else:
                reason = result.unlike.get(place, "held nothing in any run")
            yield Unchecked(place, reason)
    for shaped in watcher.classes:
        for name in shaped.hints:
            place = shaped.place(name)
            if place not in result.places:
                yield Unchecked(place, result.unlike.get(place, "were in no value that was seen"))


def watcher_of(wanted: Iterable[str]) -> ValueWatcher:
    """What watches the functions of some files, torch's own left out."""
    forget()
    watcher = ValueWatcher()
    watcher.look_at(functions_of([file for file in wanted if not is_internal(file)]))
    return watcher
