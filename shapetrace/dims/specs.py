"""What goes into a model, as text: ``ids:int64[B=2,n=16]<1000``.

A spec is ``[place:]dtype[axes][<bound]`` for a tensor, or ``place=literal`` for anything
else. The place is a parameter's name or position, with ``.`` for what lies inside it
(``batch.ids``, ``images.0``); without one, specs are positional arguments in order. An
axis is a size, a name, or ``name=size``; a name's size is given once and holds in all the
specs, before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shapetrace.dims.spec_text import DTYPES, OpenAxis, SpecReader, ValuePlace
from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "DTYPES",
    "InputAxis",
    "InputSpecs",
    "LiteralSpec",
    "TensorSpec",
    "ValuePlace",
    "parse_specs",
]


@dataclass(frozen=True, slots=True)
class InputAxis:
    """One axis of an input: its size, and its name or an empty string."""

    size: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor to be made.

    Attributes:
        place: Where it goes.
        dtype: Torch's name.
        axes: Its axes; none for a scalar.
        below: Exclusive upper bound of its integers; None when nothing is said.
    """

    place: ValuePlace
    dtype: str
    axes: tuple[InputAxis, ...]
    below: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(axis.size for axis in self.axes)

    def place_of(self, axis: int) -> str:
        """What stands for one of its axes that has no name."""
        return f"{'.'.join(map(str, self.place))}[{axis}]"

    def __str__(self) -> str:
        """The spec, written out."""
        axes = ",".join(f"{a.name}={a.size}" if a.name else str(a.size) for a in self.axes)
        place = ".".join(map(str, self.place))
        bound = "" if self.below is None else f"<{self.below}"
        return f"{place}:{self.dtype}[{axes}]{bound}"


@dataclass(frozen=True, slots=True)
class LiteralSpec:
    """A value that is no tensor: ``use_cache=False``."""

    place: ValuePlace
    value: object


@dataclass(frozen=True, slots=True)
class InputSpecs:
    """All that a model is called with.

    Attributes:
        tensors: The tensors, in order.
        literals: Everything else.
        sizes: Sizes of the named axes, in the order in which the names appear.
    """

    tensors: tuple[TensorSpec, ...] = ()
    literals: tuple[LiteralSpec, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    def loose(self) -> dict[str, int]:
        """The axes without a name that are longer than 1, by their places: ``x[1]``."""
        return {
            spec.place_of(position): axis.size
            for spec in self.tensors
            for position, axis in enumerate(spec.axes)
            if not axis.name and axis.size > 1
        }

    def resized(self, sizes: Mapping[str, int]) -> InputSpecs:
        """The same inputs with other sizes for some of the names, or of the loose axes."""
        new = {name: sizes.get(name, size) for name, size in self.sizes}
        tensors = tuple(
            replace(
                spec,
                axes=tuple(
                    replace(axis, size=sizes.get(axis.name or spec.place_of(position), axis.size))
                    for position, axis in enumerate(spec.axes)
                ),
            )
            for spec in self.tensors
        )
        return replace(self, tensors=tensors, sizes=tuple(new.items()))


def parse_specs(texts: Sequence[str]) -> InputSpecs:
    """Read the specs of one call.

    Args:
        texts: One spec each.

    Raises:
        ShapetraceError: With a caret under the place that cannot be read, for a name without
            a size or with two, and for two values at one place.
    """
    readers = [SpecReader(text) for text in texts]
    sizes = _sizes(readers)
    tensors, literals, position = [], [], 0
    for reader in readers:
        place = reader.place
        if not place:
            place, position = (position,), position + 1
        if reader.is_literal:
            literals.append(LiteralSpec(place, reader.literal))
        else:
            axes = tuple(_axis(reader, opened, sizes) for opened in reader.axes)
            tensors.append(TensorSpec(place, reader.dtype, axes, reader.below))
    found = InputSpecs(tuple(tensors), tuple(literals), tuple(sizes.items()))
    _check_places(found)
    return found


def _sizes(readers: Sequence[SpecReader]) -> dict[str, int]:
    """Each name's size, found in whichever spec gives it."""
    order = dict.fromkeys(axis.name for reader in readers for axis in reader.axes if axis.name)
    sizes: dict[str, int] = {}
    for reader in readers:
        for axis in reader.axes:
            if axis.name and axis.size is not None:
                known = sizes.setdefault(axis.name, axis.size)
                if known != axis.size:
                    reader.refuse(axis.at, f"`{axis.name}` is {known} elsewhere; give it one size")
    return {name: sizes[name] for name in order if name in sizes}


def _axis(reader: SpecReader, opened: OpenAxis, sizes: Mapping[str, int]) -> InputAxis:
    """The axis with its size, looked up where it is only named."""
    name = opened.name
    size = opened.size if opened.size is not None else sizes.get(name)
    if size is None:
        reader.refuse(opened.at, f"no spec gives a size for `{name}`; write {name}=4")
    return InputAxis(size, name)


def _check_places(specs: InputSpecs) -> None:
    """No two values at one place, and none inside another; list indices count from 0."""
    places = [spec.place for spec in specs.tensors] + [spec.place for spec in specs.literals]
    known = set(places)
    for place in places:
        written = ".".join(map(str, place))
        if places.count(place) > 1:
            raise ShapetraceError(f"two inputs are given for {written}; give each place once")
        if any(place[:cut] in known for cut in range(1, len(place))):
            raise ShapetraceError(f"{written} lies inside an input that is given whole")
    _check_indices(places)


def _check_indices(places: Sequence[ValuePlace]) -> None:
    inside: dict[ValuePlace, list[str | int]] = {}
    for place in places:
        for cut in range(len(place)):
            inside.setdefault(place[:cut], []).append(place[cut])
    for place, keys in inside.items():
        numbers = {key for key in keys if isinstance(key, int)}
        where = ".".join(map(str, place)) or "the positional arguments"
        if numbers and numbers != set(range(len(numbers))):
            raise ShapetraceError(f"{where}: indices are {sorted(numbers)}; they must count from 0")
        if numbers and place and len(numbers) < len(set(keys)):
            raise ShapetraceError(f"{where} has both indices and names; it is a list or a dict")
