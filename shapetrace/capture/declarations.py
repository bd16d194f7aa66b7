"""Annotations in the source: what they say, and jaxtyping's verdict on each.

The verdict is jaxtyping's own `isinstance` in a context of its own per call, taken after
the run on weightless tensors of the recorded shapes, once per distinct call.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import AbstractArray, jaxtyped

from shapetrace.dims import Declaration, DeclaredShape
from shapetrace.trace.records import TensorRecord

_UNION = (typing.Union, types.UnionType)


@dataclass(frozen=True, slots=True)
class Declared:
    """An annotation evaluated for one place in a value.

    Attributes:
        declaration: What it says, as plain data.
        types: The jaxtyping classes it names, in the order of `declaration.shapes`.
    """

    declaration: Declaration
    types: tuple[type[AbstractArray], ...] = ()


class Declarations:
    """Evaluates annotations in the namespaces of the functions that carry them."""

    def __init__(self, namespaces: Mapping[int, Mapping[str, Any]]) -> None:
        """Take the namespaces.

        Args:
            namespaces: By function number: module globals overlaid by closure variables.
        """
        self._namespaces = namespaces
        self._evaluated: dict[tuple[int, str], tuple[Any, str]] = {}
        self._declared: dict[tuple[int, str, str], Declared | None] = {}

    def at(self, owner: int, text: str, element: str) -> Declared | None:
        """The declaration of a value, or of an element inside it.

        Args:
            owner: Number of the function that carries the annotation.
            text: The annotation as written.
            element: Place inside the value: empty, ``[0]``, ``['mask']``, ``.logits``.

        Returns:
            The declaration; None when the annotation says nothing of shapes there.
        """
        key = (owner, text, element)
        if key not in self._declared:
            self._declared[key] = self._read(owner, text, element)
        return self._declared[key]

    def _read(self, owner: int, text: str, element: str) -> Declared | None:
        annotation, problem = self._evaluate(owner, text)
        if problem:
            mentions = any(name in text for name in _DTYPES)
            return Declared(Declaration(text, (), problem)) if mentions else None
        found = tuple(_arrays(_descend(annotation, element)))
        if not found:
            return None
        shapes = tuple(DeclaredShape(array.dtype.__name__, array.dim_str) for array in found)
        return Declared(Declaration(text, shapes), found)

    def _evaluate(self, owner: int, text: str) -> tuple[Any, str]:
        key = (owner, text)
        if key not in self._evaluated:
            value: Any = text
            problem = ""
            namespace = dict(self._namespaces.get(owner, {}))
            try:
                while isinstance(value, str):
                    value = eval(value, namespace)  # noqa: S307 - the module's own annotation
            except Exception as error:  # noqa: BLE001 - any name or operator may be missing
                problem = f"{type(error).__name__}: {error}"
            self._evaluated[key] = (value, problem)
        return self._evaluated[key]


_DTYPES = ("Float", "Int", "UInt", "Integer", "Bool", "Complex", "Num", "Inexact", "Real", "Shaped")
"""Names that show an annotation to be jaxtyping's even where it can't be evaluated."""


def _arrays(annotation: Any) -> typing.Iterator[type[AbstractArray]]:
    """The jaxtyping classes that an annotation allows."""
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        yield annotation
    elif typing.get_origin(annotation) in _UNION:
        for option in typing.get_args(annotation):
            yield from _arrays(option)
    elif typing.get_origin(annotation) is typing.Annotated:
        yield from _arrays(typing.get_args(annotation)[0])
    elif hasattr(annotation, "__value__"):  # a `type` statement
        yield from _arrays(annotation.__value__)


def _descend(annotation: Any, element: str) -> Any:
    """The part of an annotation that speaks of an element of the value."""
    while element and annotation is not None:
        step, element = _first_step(element)
        annotation = _part(annotation, step)
    return annotation


def _first_step(element: str) -> tuple[str, str]:
    if element.startswith("["):
        step, _, rest = element.partition("]")
        return step + "]", rest
    end = min((i for i in (element.find(".", 1), element.find("[", 1)) if i > 0), default=None)
    return (element, "") if end is None else (element[:end], element[end:])


def _part(annotation: Any, step: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _UNION:
        parts = [_part(option, step) for option in arguments]
        return next((part for part in parts if part is not None), None)
    if step.startswith("."):
        return _field(annotation, step[1:])
    if origin is tuple and arguments:
        if arguments[-1] is Ellipsis:
            return arguments[0]
        number = int(step[1:-1]) if step[1:-1].isdigit() else -1
        return arguments[number] if 0 <= number < len(arguments) else None
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) > 1:
        return arguments[1]
    if isinstance(origin, type) and issubclass(origin, Sequence) and arguments:
        return arguments[0]
    return None


def _field(annotation: Any, name: str) -> Any:
    if not (dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields")):
        return None
    try:
        return typing.get_type_hints(annotation).get(name)
    except Exception:  # noqa: BLE001 - a field's annotation that does not resolve says nothing
        return None


def verdicts(
    call: Sequence[tuple[TensorRecord, Declared | None]],
) -> list[TensorRecord]:
    """The records of one call with declaration and verdict.

    Args:
        call: The call's records in order, each with its declaration if it has one.

    Returns:
        The same records; `holds` is None where nothing is declared or it can't be decided.
    """
    result = []
    with jaxtyped("context"):
        for record, declared in call:
            if declared is None:
                result.append(record)
                continue
            holds, problem = _holds(record, declared)
            declaration = declared.declaration
            if problem:
                declaration = replace(declaration, problem=problem)
            result.append(replace(record, declared=declaration, holds=holds))
    return result


def unjudged(call: Sequence[tuple[TensorRecord, Declared | None]]) -> list[TensorRecord]:
    """The records of one call with their declarations alone."""
    return [
        record if declared is None else replace(record, declared=declared.declaration)
        for record, declared in call
    ]


def _holds(record: TensorRecord, declared: Declared) -> tuple[bool | None, str]:
    if not declared.types:
        return None, declared.declaration.problem
    if record.layout == "jagged" or any(size < 0 for size in record.shape):
        return None, "a ragged tensor's sizes are not numbers"
    stand_in = torch.empty(record.shape, dtype=getattr(torch, record.dtype), device="meta")
    problem = ""
    for array in declared.types:
        value = torch.nn.Parameter(stand_in, requires_grad=False)
        try:
            if isinstance(value if array.array_type is torch.nn.Parameter else stand_in, array):
                return True, ""
        except Exception as error:  # noqa: BLE001 - jaxtyping's own complaint is the finding
            problem = str(error).partition(". ")[0]
    return (None, problem) if problem else (False, "")
