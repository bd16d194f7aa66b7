"""Why a value does not fit its annotation: the conflicts in words, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.check.mismatch import (
    Mismatch,
    MismatchKind,
    observed,
    path_of,
    place_of,
    source_of,
    value_of,
)
from shapetrace.dims import Binding, Bindings, Conflict, DimsError, dtype_fits, fit, parse_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapetrace.dims import DeclaredShape
    from shapetrace.records.trace import TensorRecord, Trace

CONFIGURATION = -1
"""The source of a binding that no tensor made."""
ARGUMENTS = -2
"""The source of what a part in braces (``{self.d_k}``) is worth."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is wrong with a value.

    Attributes:
        kind: What.
        subject: ``axis `n` is 4``.
        objection: ``but 5 since ...``.
        wanted: What would fit: ``first axis 5``; empty when no value would.
    """

    kind: MismatchKind
    subject: str
    objection: str
    wanted: str

    def at(self, place: str) -> str:
        """The reason as a line, with the place between its halves."""
        return f"{self.subject} in {place}, {self.objection}"

    @property
    def brief(self) -> str:
        """The reason as a line without a place."""
        return f"{self.subject}, {self.objection}"


def explain_refusal(trace: Trace, index: int, bindings: Bindings) -> Mismatch:
    """A finding for a value that jaxtyping refused.

    Args:
        trace: The run.
        index: The value's place among the tensors; it has a declaration with shapes.
        bindings: What earlier values of the same call bound.
    """
    record = trace.tensors[index]
    declared = record.declared
    shapes = declared.shapes if declared else ()
    place = place_of(trace, record)
    why = [reasons(trace, index, shape, bindings) for shape in shapes]
    text = declared.text if declared else ""
    if len(shapes) > 1:
        fix = f"{_verb(trace, record)} in one of these shapes, or correct the annotation"
        lines = _alternatives(place, shapes, why)
        return finding(trace, index, "union", lines, annotated=text, fix=fix)
    if not shapes or not why[0]:
        line = f"jaxtyping refuses the value in {place}, for a reason that the trace does not tell"
        fix = "look at the annotation's own class or expression"
        return finding(trace, index, "unexplained", (line,), annotated=text, fix=fix)
    lines = tuple(reason.at(place) for reason in why[0])
    fix = _fix(trace, record, why[0])
    return finding(trace, index, why[0][0].kind, lines, annotated=shapes[0].dims, fix=fix)


def _alternatives(
    place: str, shapes: Sequence[DeclaredShape], why: Sequence[Sequence[Reason]]
) -> tuple[str, ...]:
    lines = [f"none of the {len(shapes)} alternatives fits in {place}"]
    for shape, found in zip(shapes, why, strict=True):
        told = "; ".join(reason.brief for reason in found) or "refused by jaxtyping"
        lines.append(f'  {shape.dtype} "{shape.dims}": {told}')
    return tuple(lines)


def finding(
    trace: Trace,
    index: int,
    kind: MismatchKind,
    lines: tuple[str, ...],
    *,
    annotated: str,
    fix: str,
) -> Mismatch:
    """A finding about a value, with its place and what was observed."""
    record = trace.tensors[index]
    site = trace.sites[record.site]
    return Mismatch(
        kind=kind,
        tensor=index,
        path=path_of(trace, record),
        value=value_of(trace, record),
        reasons=lines,
        observed=observed(record),
        annotated=annotated,
        file=site.file,
        line=site.line,
        fix=fix,
    )


def reasons(trace: Trace, index: int, shape: DeclaredShape, bindings: Bindings) -> list[Reason]:
    """Everything that is wrong with a value under one alternative of its annotation."""
    record = trace.tensors[index]
    found = []
    if dtype_fits(shape.dtype, record.dtype) is False:
        subject, objection = f"dtype is {record.dtype}", f"but {shape.dtype} is declared"
        found.append(Reason("dtype", subject, objection, f"dtype {shape.dtype}"))
    try:
        _, conflicts = fit(parse_dims(shape.dims), record.shape, bindings, index)
    except DimsError as error:
        return [*found, Reason("unexplained", "the annotation cannot be read", str(error), "")]
    return [*found, *(_reason(trace, conflict) for conflict in conflicts)]


def worths(record: TensorRecord) -> Bindings:
    """What the parts in braces of a value's annotation are worth, as bindings."""
    values = record.declared.values if record.declared else ()
    return {text: Binding(text, size, ARGUMENTS) for text, size in values}


def since(trace: Trace, binding: Binding, index: int) -> str:
    """Who bound a name, as the end of a sentence."""
    if binding.source == CONFIGURATION:
        return "in the configuration"
    if binding.source == ARGUMENTS:
        return "in the call's arguments"
    if binding.source == index:
        return "earlier in the same shape"
    return f"since {source_of(trace, trace.tensors[binding.source])}"


def _reason(trace: Trace, conflict: Conflict) -> Reason:
    written, came, expected = conflict.written, conflict.observed, conflict.expected
    nth = "" if conflict.axis is None else _nth(conflict.axis)
    match conflict.kind:
        case "rank":
            open_ended = any(word == "..." or word.startswith("*") for word in written.split())
            least = "at least " if open_ended else ""
            return Reason(
                "rank", _axes(came), f"but {least}{expected} declared", f"{least}{_axes(expected)}"
            )
        case "literal":
            return Reason(
                "literal",
                f"axis `{written}` is {came}",
                f"but the annotation says {expected}",
                f"{nth} {expected}",
            )
        case "expression":
            by = " and ".join(
                f"{b.name} = {b.size} {since(trace, b, conflict.source)}" for b in conflict.bound
            )
            return Reason(
                "expression",
                f"axis `{written}` is {came}",
                f"but {expected} by {by}",
                f"{nth} {expected}",
            )
        case "unbound":
            return Reason("unbound", f"axis `{written}` is {came}", f"but {conflict.problem}", "")
        case "variadic":
            who = since(trace, conflict.bound[0], conflict.source)
            return Reason(
                "variadic",
                f"axes `{written}` are {came}",
                f"but {expected} {who}",
                f"{expected} for `{written}`",
            )
    who = since(trace, conflict.bound[0], conflict.source)
    or_one = " or 1" if written.startswith("#") else ""
    return Reason(
        "size", f"axis `{written}` is {came}", f"but {expected} {who}", f"{nth} {expected}{or_one}"
    )


def _axes(count: object) -> str:
    return f"{count} axis" if count == 1 else f"{count} axes"


def _nth(axis: int) -> str:
    return f"{_ORDINALS[axis]} axis" if axis < len(_ORDINALS) else f"axis {axis + 1}"


def _fix(trace: Trace, record: TensorRecord, found: Sequence[Reason]) -> str:
    wanted = [reason.wanted for reason in found if reason.wanted]
    if not wanted:
        return "use only names that earlier values of the call bind, or give the axis a name of its own"
    return f"{_verb(trace, record)} with {' and '.join(wanted)}, or correct the annotation"


def _verb(trace: Trace, record: TensorRecord) -> str:
    site = trace.sites[record.site]
    if site.kind == "return":
        return "return a tensor"
    verb = "pass" if site.kind == "argument" else "make"
    return f"{verb} `{site.name}{record.element}`"
