"""What is to be written where, as plain data, and what was not and why."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.annotation.plan.annotation import Annotation


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """An annotation for a variable that a statement binds.

    Attributes:
        line: Line of the statement.
        name: The variable.
        annotation: What it is there.
    """

    line: int
    name: str
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """Annotations for one function.

    Attributes:
        line: Line of its ``def``.
        qualname: Its name, for people: ``Attention.forward``.
        parameters: Name and annotation.
        returns: What it returns; None to leave that open.
        locals: Annotations for its variables.
    """

    line: int
    qualname: str
    parameters: tuple[tuple[str, Annotation], ...] = ()
    returns: Annotation | None = None
    locals: tuple[LocalPlan, ...] = ()

    @property
    def count(self) -> int:
        """How many annotations it holds."""
        return len(self.parameters) + (self.returns is not None) + len(self.locals)


@dataclass(frozen=True, slots=True)
class FilePlan:
    """Annotations for the functions of one file."""

    file: str
    functions: tuple[FunctionPlan, ...] = ()

    @property
    def annotations(self) -> list[Annotation]:
        """All that it holds."""
        return [
            annotation
            for function in self.functions
            for annotation in (
                *(parameter for _, parameter in function.parameters),
                *((function.returns,) if function.returns is not None else ()),
                *(local.annotation for local in function.locals),
            )
        ]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that gets no annotation, or a weaker one, and why.

    Attributes:
        file: Its file.
        line: Line of the function.
        function: Qualified name of the function.
        name: Parameter, variable, ``return``, or empty for the whole function.
        reason: Why, in words.
    """

    file: str
    line: int
    function: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Written:
    """An annotation that was put into a file.

    Attributes:
        line: Line of the function in the old file.
        function: Its qualified name.
        name: Parameter, variable or ``return``.
        kind: ``argument``, ``local`` or ``return``.
    """

    line: int
    function: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file's new source.

    Attributes:
        file: The file.
        old: Its bytes as they are.
        new: Its bytes with the annotations; equal to `old` when nothing was written.
        written: What was put in.
        left_out: What the source did not allow.
    """

    file: str
    old: bytes
    new: bytes
    written: tuple[Written, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything is different."""
        return self.old != self.new
