"""A place's structures, from all calls, as one annotation with the tensors in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.annotation.inference.calls import PathSteps
from shapetrace.annotation.plan.annotation import (
    NONE,
    Annotation,
    DictOf,
    Plain,
    Repeated,
    TupleOf,
    UnknownPart,
    union,
)

if TYPE_CHECKING:
    from shapetrace.records.structure import Structure

EVERY = "[*]"
"""A step to every item of a container."""
_LONGEST_TUPLE = 4
"""Longer tuples of equal items are as many by accident: one per layer."""
_BUILTINS = frozenset({"int", "float", "bool", "str", "bytes", "complex"})

Leaf = Callable[[PathSteps, bool], Annotation]
"""The annotation of the tensors at the end of some steps; whether every call has them."""


@dataclass(frozen=True, slots=True)
class Places:
    """How to annotate what is found inside a value.

    Attributes:
        leaf: Annotates tensors.
        visible: Names that the file's annotations may use.
    """

    leaf: Leaf
    visible: Collection[str]

    def annotate(
        self, structures: Sequence[Structure], steps: PathSteps = (), *, firm: bool = True
    ) -> Annotation:
        """The annotation that allows all of some structures."""
        groups: dict[str, list[Structure]] = {}
        for structure in structures:
            groups.setdefault(structure.kind, []).append(structure)
        firm = firm and len(groups) == 1
        options = [
            option
            for kind, group in groups.items()
            for option in self._options(kind, group, steps, firm=firm)
        ]
        return union(options) if options else UnknownPart()

    def _options(
        self, kind: str, group: Sequence[Structure], steps: PathSteps, *, firm: bool
    ) -> list[Annotation]:
        match kind:
            case "tensor":
                return [self.leaf(steps, firm)]
            case "none":
                return [NONE]
            case "tuple":
                return [self._tuple(group, steps, firm=firm)]
            case "list":
                return [Repeated("list", self._items(group, steps))]
            case "dict":
                return [DictOf(_keys(group), self._items(group, steps))]
            case "ragged":
                return [UnknownPart()]
            case _:
                return [self._class(structure) for structure in group]

    def _tuple(self, group: Sequence[Structure], steps: PathSteps, *, firm: bool) -> Annotation:
        lengths = {len(structure.items) for structure in group}
        items = [item for structure in group for _, item in structure.items]
        alike = len(set(items)) == 1
        if len(lengths) > 1 or (alike and max(lengths) > _LONGEST_TUPLE):
            return Repeated("tuple", self._items(group, steps))
        columns = zip(*(structure.items for structure in group), strict=True)
        return TupleOf(
            tuple(
                self.annotate([item for _, item in column], (*steps, column[0][0]), firm=firm)
                for column in columns
            )
        )

    def _items(self, group: Sequence[Structure], steps: PathSteps) -> Annotation:
        items = [item for structure in group for _, item in structure.items]
        return self.annotate(list(dict.fromkeys(items)), (*steps, EVERY), firm=False)

    def _class(self, structure: Structure) -> Annotation:
        name = structure.type_name
        builtin = structure.module == "builtins" and name in _BUILTINS
        return Plain(name) if builtin or name in self.visible else UnknownPart()


def _keys(group: Sequence[Structure]) -> Annotation:
    steps = [step[1:-1] for structure in group for step, _ in structure.items]
    if steps and all(step.startswith(("'", '"')) for step in steps):
        return Plain("str")
    return Plain("int") if steps and all(_is_int(step) for step in steps) else UnknownPart()


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def leads_to(pattern: PathSteps, steps: PathSteps) -> bool:
    """Whether steps go where a pattern goes, which may say "every item"."""
    return len(pattern) == len(steps) and all(
        want in (EVERY, have) for want, have in zip(pattern, steps, strict=True)
    )
