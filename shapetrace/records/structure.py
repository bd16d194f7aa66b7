"""What kind of value stood in a place, as plain data: containers, None, classes.

A trace records tensors. Whether they stood alone, beside None or in a tuple, a list, a
mapping or a named container is a `Structure`; annotations need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

StructureKind = Literal["tensor", "none", "tuple", "list", "dict", "fields", "class", "ragged"]
ParameterPlace = tuple[str, int, str]
"""File, line of the ``def``, and the parameter's name or ``return``."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of one value, without any size.

    Attributes:
        kind: A tensor; None; a tuple, list or dict of items; an object with named fields
            (a dataclass or a named tuple); any other object; a tensor with no plain sizes.
        type_name: The class's name; empty for tensors and None.
        module: The class's module.
        items: The step into the value (``[0]``, ``['mask']``, ``.logits``) and what is there.
    """

    kind: StructureKind
    type_name: str = ""
    module: str = ""
    items: tuple[tuple[str, Structure], ...] = ()

    @property
    def has_tensor(self) -> bool:
        """Whether a tensor is in it."""
        return self.kind == "tensor" or any(item.has_tensor for _, item in self.items)


Structures = Mapping[ParameterPlace, tuple[Structure, ...]]
"""The distinct structures that each place held."""
