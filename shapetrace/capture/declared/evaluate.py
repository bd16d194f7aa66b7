"""Annotations in the source: what they say, and jaxtyping's verdict on each.

The verdict is jaxtyping's own `isinstance` in a context of its own per call, taken after
the run on weightless tensors of the recorded shapes, once per distinct call.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import AbstractArray, jaxtyped

from shapetrace.capture.source.braces import Held, filled
from shapetrace.check.scopes import Whose, whose_names
from shapetrace.dims import Declaration, DeclaredShape
from shapetrace.records.trace import TensorRecord

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


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where the annotations of a function are to be read.

    Attributes:
        names: Module globals overlaid by closure variables.
        own: Names that the function's code binds; an annotation that uses one can't be read
            from outside, which is no fault of it.
        annotations: The function's own annotations, as Python has evaluated them.
        whole: Whether `names` holds all that the function sees; not so for one made in
            another function, whose variables are gone.
        variadic: The parameters ``*args`` and ``**kwargs``.
    """

    names: Mapping[str, Any]
    own: frozenset[str] = frozenset()
    annotations: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = True
    variadic: frozenset[str] = frozenset()


NOWHERE = Namespace({}, whole=False)
"""For functions that were not alive when the recording began."""


class Declarations:
    """Evaluates annotations in the namespaces of the functions that carry them."""

    def __init__(self, namespaces: Mapping[int, Namespace]) -> None:
        """Take the namespaces.

        Args:
            namespaces: By function number.
        """
        self._namespaces = namespaces
        self._evaluated: dict[tuple[int, str, str], tuple[Any, str]] = {}
        self._declared: dict[tuple[int, str, str, str, Held], Declared | None] = {}

    def at(
        self, owner: int, text: str, element: str, name: str = "", held: Held = ()
    ) -> Declared | None:
        """The declaration of a value, or of an element inside it.

        Args:
            owner: Number of the function that carries the annotation.
            text: The annotation as written.
            element: Place inside the value: empty, ``[0]``, ``['mask']``, ``.logits``.
            name: The parameter that is annotated, or ``return``; empty for a variable.
            held: What parts in braces are worth in this call.

        Returns:
            The declaration; None when the annotation says nothing of shapes there.
        """
        key = (owner, text, element, name, held if "{" in text else ())
        if key not in self._declared:
            self._declared[key] = self._read(*key)
        return self._declared[key]

    def _read(self, owner: int, text: str, element: str, name: str, held: Held) -> Declared | None:
        annotation, problem = self._evaluate(owner, text, name)
        if problem:
            return Declared(Declaration(text, (), problem)) if _seems_shaped(text) else None
        if name in self._namespaces.get(owner, NOWHERE).variadic:
            _, element = _first_step(element)  # the annotation is that of one item
        found = tuple(_arrays(_descend(annotation, element)))
        if not found:
            return None
        shapes = tuple(DeclaredShape(array.dtype.__name__, array.dim_str) for array in found)
        declared = Declared(Declaration(text, shapes), found)
        return _filled(declared, held) if any("{" in shape.dims for shape in shapes) else declared

    def _evaluate(self, owner: int, text: str, name: str) -> tuple[Any, str]:
        key = (owner, text, name)
        if key not in self._evaluated:
            space = self._namespaces.get(owner, NOWHERE)
            value, error = _evaluated(text, space.names)
            known = space.annotations.get(name) if name else None
            if error is not None and known is not None and not isinstance(known, str):
                value, error = known, None
            problem = "" if error is None else f"{type(error).__name__}: {error}"
            if _is_elsewhere(error, space):
                value, problem = None, ""
            self._evaluated[key] = (value, problem)
        return self._evaluated[key]


def _evaluated(text: str, names: Mapping[str, Any]) -> tuple[Any, Exception | None]:
    """What an annotation means; a string in it is read again."""
    value: Any = text
    try:
        while isinstance(value, str):
            value = eval(value, dict(names))  # noqa: S307 - the module's own annotation
    except Exception as error:  # noqa: BLE001 - any name or operator may be missing
        return None, error
    return value, None


def _is_elsewhere(error: Exception | None, space: Namespace) -> bool:
    """Whether a name is only unknown because it is looked up from outside the function."""
    return isinstance(error, NameError) and (not space.whole or error.name in space.own)


_DTYPE = re.compile(r"\b(Float|B?Int|UInt|Integer|Bool|Complex|Num|Inexact|Real|Shaped)\d*\[")
"""What shows an annotation to be jaxtyping's even where it can't be evaluated."""


def _seems_shaped(text: str) -> bool:
    """Whether an annotation looks like jaxtyping's: by its name, or ``Any[Thing, "a b"]``."""
    if _DTYPE.search(text):
        return True
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    if isinstance(tree.body, ast.Constant) and isinstance(tree.body.value, str):
        return _seems_shaped(tree.body.value)
    pairs = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    return any(_is_pair(node) for node in pairs)


def _is_pair(node: ast.Subscript) -> bool:
    match node:
        case ast.Subscript(
            value=ast.Name(id=name) | ast.Attribute(attr=name),
            slice=ast.Tuple(elts=[_, ast.Constant(value=str())]),
        ):
            return name not in {"Literal", "Annotated", "dict", "Dict", "tuple", "Tuple", "Union"}
    return False


def _filled(declared: Declared, held: Held) -> Declared:
    """The declaration with its parts in braces worked out for one call."""
    found, values, problem = [], dict[str, int](), ""
    for array in declared.types:
        dims, why, worth = filled(array.dim_str, held)
        problem = problem or why
        values.update(worth)
        if dims is not None:
            found.append(array.dtype[array.array_type, dims])
    if len(found) < len(declared.types):
        return Declared(replace(declared.declaration, problem=problem))
    declaration = replace(declared.declaration, values=tuple(values.items()))
    return Declared(declaration, tuple(found))


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
    result = [record for record, _ in call]
    groups: dict[Whose, list[int]] = {}
    for number, (record, declared) in enumerate(call):
        if declared is not None:
            groups.setdefault(whose_names(record), []).append(number)
    for numbers in groups.values():
        with jaxtyped("context"):
            for number in numbers:
                record, declared = call[number]
                if declared is not None:
                    result[number] = _judged(record, declared)
    return result


def _judged(record: TensorRecord, declared: Declared) -> TensorRecord:
    holds, problem = _holds(record, declared)
    declaration = declared.declaration
    if problem:
        declaration = replace(declaration, problem=problem)
    return replace(record, declared=declaration, holds=holds)


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
