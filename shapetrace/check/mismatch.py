"""One finding, and its text in the house's style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shapetrace.dims import short_dtype

if TYPE_CHECKING:
    from shapetrace.records.trace import TensorRecord, Trace

MismatchKind = Literal[
    "size",
    "rank",
    "literal",
    "expression",
    "unbound",
    "variadic",
    "dtype",
    "union",
    "unexplained",
    "unresolved",
    "pinned",
    "probe",
    "form",
]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An annotation that does not hold, or holds by accident.

    Attributes:
        kind: What is wrong: a name's size, the number of axes, a written number, an
            expression's value, an expression with unbound names, a variadic's shape, the
            dtype, every alternative of a union, something that the trace does not tell;
            or an annotation that cannot be evaluated, a name with two sizes in one run, a
            name that only today's numbers bear out.
        tensor: Index into `Trace.tensors`.
        path: Path of the call; the model's class for the root.
        value: The value in words: ``argument `w```.
        reasons: What is wrong, one line each.
        observed: Dtype and sizes that came: ``f32[7, 5]``.
        annotated: The dims as declared; the whole annotation for a union.
        file: Source file of the annotation.
        line: Its line.
        fix: What to do.
        calls: How many calls of the same code show it.
    """

    kind: MismatchKind
    tensor: int
    path: str
    value: str
    reasons: tuple[str, ...]
    observed: str
    annotated: str
    file: str
    line: int
    fix: str
    calls: int = 1

    @property
    def text(self) -> str:
        """The finding for people, several lines without a last newline."""
        lines = [
            *self.reasons,
            f'  observed {self.observed}   annotated "{self.annotated}"   {short_path(self.file)}:{self.line}',
            f"  fix: {self.fix}",
        ]
        if self.calls > 1:
            lines.append(f"  the same in {self.calls} calls")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text


def observed(record: TensorRecord) -> str:
    """``f32[7, 5]``."""
    return f"{short_dtype(record.dtype)}[{', '.join(map(str, record.shape))}]"


def value_of(trace: Trace, record: TensorRecord) -> str:
    """``argument `w```, ``local `q```, ``return value``; with the place in a container."""
    site = trace.sites[record.site]
    if site.kind == "return":
        return f"return value{record.element and ' ' + record.element}"
    return f"{site.kind} `{site.name}{record.element}`"


def path_of(trace: Trace, record: TensorRecord) -> str:
    """The path of the call that a value was recorded in; the root's class for the root."""
    scope = trace.scopes[record.scope]
    return scope.path or scope.type_name or trace.target


def place_of(trace: Trace, record: TensorRecord) -> str:
    """``blocks.0.mlp (argument `w`)``."""
    return f"{path_of(trace, record)} ({value_of(trace, record)})"


def source_of(trace: Trace, record: TensorRecord) -> str:
    """``blocks.0.norm (return value, model/norm.py:12)``."""
    site = trace.sites[record.site]
    return (
        f"{path_of(trace, record)} ({value_of(trace, record)}, {short_path(site.file)}:{site.line})"
    )


def short_path(file: str) -> str:
    """The last two parts of a path."""
    return "/".join(file.replace("\\", "/").split("/")[-2:])
