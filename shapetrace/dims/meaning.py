"""What an axis means, and what the source says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Evidence = Literal["declared", "input", "probe", "attribute", "guess", "literal"]

MARKS: dict[Evidence, str] = {"guess": "?", "attribute": "~"}
"""What follows a name that is guessed by position, or an attribute of the same size."""


@dataclass(frozen=True, slots=True)
class Dim:
    """What one axis of a tensor means.

    Attributes:
        name: A name or an expression of names: ``B``, ``h*d_k``, ``n+1``, ``3``.
        evidence: Where the name comes from, strongest first: an annotation in the
            source (``declared``), the name given to an input's axis (``input``), a scaling
            probe (``probe``), an attribute of the module (``attribute``), a guess by
            position (``guess``), or just the number (``literal``).
        detail: The evidence in words, for ``--dims explain``.
    """

    name: str
    evidence: Evidence
    detail: str = ""

    @property
    def marked(self) -> str:
        """The name for people: one that is guessed, or an attribute's, carries a mark."""
        return self.name + MARKS.get(self.evidence, "")


@dataclass(frozen=True, slots=True)
class DeclaredShape:
    """One jaxtyping annotation: ``Float[Tensor, "B n d_model"]``.

    Attributes:
        dtype: The dtype class's name: ``Float``, ``Int``, ``Bool``, ``Shaped``, ...
        dims: The dims as written: ``B n d_model``.
    """

    dtype: str
    dims: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the source says a value is.

    Attributes:
        text: The annotation as written.
        shapes: Its tensor alternatives; several for a Union, empty when the text names
            none (or could not be evaluated, see `problem`).
        problem: Why the annotation could not be evaluated, else empty.
        values: What its parts in braces were worth in this call: ``("{self.d_k}", 8)``.
    """

    text: str
    shapes: tuple[DeclaredShape, ...] = ()
    problem: str = ""
    values: tuple[tuple[str, int], ...] = ()
