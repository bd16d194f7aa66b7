"""Jaxtyping's dimension strings, as frozen records: parsed, and printed again.

The grammar is jaxtyping's: axes separated by spaces; each a name, a number, ``_``,
``...``, or an expression of names; before it ``*`` (any number of axes), ``#``
(broadcastable), ``_`` (not bound) or ``?`` (per leaf of a tree); and ``rows=4`` for a
number with a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from shapetrace.errors import ShapetraceError


class DimsError(ShapetraceError, ValueError):
    """A dimension string that cannot be read."""


@dataclass(frozen=True, slots=True)
class Named:
    """An axis with a name, the same size wherever the name stands: ``n``, ``#n``, ``?n``.

    Attributes:
        name: The name.
        broadcastable: Whether size 1 is accepted too.
        per_leaf: Whether the name is bound anew for each leaf of a tree.
        label: A name written before an equals sign, which jaxtyping ignores.
    """

    name: str
    broadcastable: bool = False
    per_leaf: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Variadic:
    """Any number of axes under one name: ``*batch``, ``*#batch``.

    Attributes:
        name: The name.
        broadcastable: Whether shapes that broadcast are accepted.
        per_leaf: Whether the name is bound anew for each leaf of a tree.
        label: A name written before an equals sign, which jaxtyping ignores.
    """

    name: str
    broadcastable: bool = False
    per_leaf: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    """An axis of one size: ``3``, ``rows=3``.

    Attributes:
        size: The size.
        broadcastable: Whether size 1 is accepted too.
        label: The name written before the equals sign, for people.
    """

    size: int
    broadcastable: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Symbolic:
    """An axis whose size is computed from names bound before: ``h*d_k``, ``{self.width}+1``.

    Attributes:
        text: The expression.
        broadcastable: Whether size 1 is accepted too.
        label: A name written before an equals sign, which jaxtyping ignores.
    """

    text: str
    broadcastable: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Anonymous:
    """An axis of any size: ``_``, or ``_rows`` with a label for people."""

    label: str = ""


@dataclass(frozen=True, slots=True)
class AnonymousVariadic:
    """Any number of axes of any size: ``...``, or ``*_rows`` with a label for people."""

    label: str = ""


Axis = Named | Variadic | Fixed | Symbolic | Anonymous | AnonymousVariadic


@lru_cache(maxsize=4096)  # one string is read at every call of a function
def parse_dims(text: str) -> tuple[Axis, ...]:
    """The axes of a dimension string.

    Raises:
        DimsError: Jaxtyping would refuse it too.
    """
    axes = tuple(_axis(word, text) for word in text.split())
    if sum(isinstance(axis, Variadic | AnonymousVariadic) for axis in axes) > 1:
        raise DimsError(f'in "{text}": only one of `*name` and `...` can stand in one shape')
    return axes


def print_dims(axes: tuple[Axis, ...]) -> str:
    """The dimension string of some axes.

    One lone name gets a leading space, so that linters do not take it for a forward
    reference.
    """
    text = " ".join(print_axis(axis) for axis in axes)
    return f" {text}" if text.isidentifier() else text


def print_axis(axis: Axis) -> str:
    """One axis as it is written in a dimension string."""
    match axis:
        case Anonymous(label):
            return f"_{label}"
        case AnonymousVariadic(label):
            return f"*_{label}" if label else "..."
        case Fixed(size, broadcastable, label):
            return "#" * broadcastable + (f"{label}=" if label else "") + str(size)
        case Symbolic(text, broadcastable, label):
            return "#" * broadcastable + (f"{label}=" if label else "") + text
        case Named(name, broadcastable, per_leaf, label):
            marks = "#" * broadcastable + "?" * per_leaf
        case Variadic(name, broadcastable, per_leaf, label):
            marks = "*" + "#" * broadcastable + "?" * per_leaf
    return marks + (f"{label}=" if label else "") + name


def _axis(word: str, whole: str) -> Axis:
    if "," in word and "(" not in word:
        raise DimsError(f'in "{whole}": axes are separated by spaces, not commas')
    if word.endswith("#"):
        raise DimsError(f'in "{whole}": `#` stands before an axis: write `#{word[:-1]}`')
    if "..." in word:
        if word != "...":
            raise DimsError(f'in "{whole}": `...` stands alone, not in `{word}`')
        return AnonymousVariadic()
    marks, label, body = _marks(word, whole)
    if not body or body.isidentifier():
        return _named(marks, label, body, whole)
    refused = [mark for mark in "*_?" if mark in marks]
    if refused:
        raise DimsError(f'in "{whole}": `{refused[0]}` goes with a name, not with `{body}`')
    try:
        return Fixed(int(body), "#" in marks, label)
    except ValueError:
        return Symbolic(body, "#" in marks, label)


def _marks(word: str, whole: str) -> tuple[set[str], str, str]:
    """The marks before an axis, its label, and the rest of the word."""
    marks: set[str] = set()
    label, body = "", word
    while body:
        if body[0] in "#*_?":
            if body[0] in marks:
                raise DimsError(f'in "{whole}": `{body[0]}` stands twice in `{word}`')
            marks.add(body[0])
            body = body[1:]
        elif body.count("=") == 1:
            label, _, body = body.partition("=")
        else:
            break
    return marks, label, body


def _named(marks: set[str], label: str, name: str, whole: str) -> Axis:
    broadcastable, per_leaf = "#" in marks, "?" in marks
    if "_" in marks:
        if broadcastable:
            raise DimsError(f'in "{whole}": `_` fits any size, so `#` adds nothing: drop one')
        return AnonymousVariadic(name) if "*" in marks else Anonymous(name)
    kind = Variadic if "*" in marks else Named
    return kind(name, broadcastable, per_leaf, label)
