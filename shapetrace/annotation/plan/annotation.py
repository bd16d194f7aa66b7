"""Annotations as plain data, before a file's imports decide how they are spelt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Array:
    """One tensor: jaxtyping's dtype class, and an axis string per axis."""

    dtype: str
    axes: tuple[str, ...]

    @property
    def dims(self) -> str:
        """The axes as written; a lone one gets a space, so that linters see no name in it."""
        return f" {self.axes[0]}" if len(self.axes) == 1 else " ".join(self.axes)


@dataclass(frozen=True, slots=True)
class Plain:
    """Whatever needs no import: ``None``, ``int``, a class that the file already names."""

    name: str


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part of a container that can't be named: ``Any``."""


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple with one annotation per item."""

    items: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A list, or a tuple of any length, of equal items."""

    container: Literal["tuple", "list"]
    item: Annotation


@dataclass(frozen=True, slots=True)
class DictOf:
    """A mapping."""

    key: Annotation
    value: Annotation


@dataclass(frozen=True, slots=True)
class Union:
    """Alternatives; None stands last."""

    options: tuple[Annotation, ...]


Annotation: TypeAlias = Array | Plain | UnknownPart | TupleOf | Repeated | DictOf | Union
NONE = Plain("None")
ANY_SHAPE = ("...",)


def union(options: list[Annotation]) -> Annotation:
    """The least annotation that allows all of some: flat, without repeats, None last."""
    flat: list[Annotation] = []
    for option in options:
        flat.extend(option.options if isinstance(option, Union) else [option])
    if any(isinstance(option, UnknownPart) for option in flat):
        return UnknownPart()
    distinct = list(dict.fromkeys(flat))
    ordered = [o for o in distinct if o != NONE] + [o for o in distinct if o == NONE]
    return ordered[0] if len(ordered) == 1 else Union(tuple(ordered))


def parts(annotation: Annotation) -> Iterator[Annotation]:
    """An annotation and everything inside it."""
    yield annotation
    match annotation:
        case TupleOf(items) | Union(items):
            for item in items:
                yield from parts(item)
        case Repeated(_, item):
            yield from parts(item)
        case DictOf(key, value):
            yield from parts(key)
            yield from parts(value)


def arrays(annotation: Annotation) -> list[Array]:
    """The tensors that an annotation speaks of."""
    return [part for part in parts(annotation) if isinstance(part, Array)]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a file names what annotations need.

    Attributes:
        dtype: The text before a dtype class's name: empty, or ``jaxtyping.``.
        tensor: Torch's tensor class: ``Tensor``, ``torch.Tensor``.
        any: ``typing.Any``'s name.
        aliases: Dtype classes that the file imports under another name.
    """

    dtype: str = ""
    tensor: str = "Tensor"
    any: str = "Any"
    aliases: tuple[tuple[str, str], ...] = ()

    def dtype_name(self, name: str) -> str:
        """A dtype class's name in the file."""
        return dict(self.aliases).get(name, self.dtype + name)


def render_annotation(annotation: Annotation, spelling: Spelling) -> str:
    """An annotation as source."""
    match annotation:
        case Array():
            name = spelling.dtype_name(annotation.dtype)
            return f'{name}[{spelling.tensor}, "{annotation.dims}"]'
        case Plain(name):
            return name
        case UnknownPart():
            return spelling.any
        case TupleOf(items):
            inner = ", ".join(render_annotation(item, spelling) for item in items) or "()"
            return f"tuple[{inner}]"
        case Repeated(container, item):
            rest = ", ..." if container == "tuple" else ""
            return f"{container}[{render_annotation(item, spelling)}{rest}]"
        case DictOf(key, value):
            return f"dict[{render_annotation(key, spelling)}, {render_annotation(value, spelling)}]"
        case Union(options):
            return " | ".join(render_annotation(option, spelling) for option in options)
