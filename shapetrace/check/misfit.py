"""Values whose form or fields an annotation refuses, and annotations that nobody looked at."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.check.mismatch import MismatchKind


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that jaxtyping with beartype would refuse.

    Attributes:
        kind: What is wrong.
        file: Source file of the annotation.
        line: Its line.
        function: The function, or the class, that carries it.
        name: The parameter, the field, or ``return``.
        reasons: What is wrong, one line each.
        observed: What came.
        annotated: The annotation, or the part that refuses.
        fix: What to do.
        calls: How many calls show it.
    """

    kind: MismatchKind
    file: str
    line: int
    function: str
    name: str
    reasons: tuple[str, ...]
    observed: str
    annotated: str
    fix: str
    calls: int = 1


@dataclass(frozen=True, slots=True)
class AnnotationPlace:
    """One annotation that speaks of shapes.

    Attributes:
        file: Source file.
        function: The function, or the class, that carries it.
        name: The parameter, the field, the variable, or ``return``.
        line: Its line.
    """

    file: str
    function: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Unchecked:
    """An annotation that nothing was compared with.

    Attributes:
        place: The annotation.
        reason: Why.
    """

    place: AnnotationPlace
    reason: str
