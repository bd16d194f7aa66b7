"""Every annotation of a run that does not hold, with who bound what.

The verdict on each value is jaxtyping's own, taken when the run was recorded; the
explanation is worked out here, from the trace alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.check.agreement import Probed, pins, whole_numbers
from shapetrace.check.classes import Classes
from shapetrace.check.explain import explain_refusal, finding, reasons, worths
from shapetrace.check.mismatch import Mismatch, MismatchKind, place_of
from shapetrace.check.scopes import Whose, whose_names
from shapetrace.dims import Bindings, Dim, fit, parse_dims

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from shapetrace.records.trace import Trace

__all__ = ["Mismatch", "MismatchKind", "check"]


def check(
    trace: Trace,
    *,
    pinned: Collection[str] | None = None,
    probed: Mapping[int, tuple[Dim, ...]] | None = None,
    owned: Mapping[str, Mapping[str, int]] | None = None,
) -> list[Mismatch]:
    """Every finding about the annotations of a run, in the order of the values.

    Args:
        trace: The run.
        pinned: Names that mean one size in the whole run; None for the configuration's
            whole numbers, less the names of the input's axes.
        probed: What scaling probes found a tensor's axes to be, by its index.
        owned: By path of a module, the whole numbers that it holds itself.

    Returns:
        The findings; one that shows in several calls of the same code is listed once,
        with how many calls show it.
    """
    varying = frozenset(name for name, _ in trace.sizes)
    built = {name: size for name, size in whole_numbers(trace).items() if name not in varying}
    agreement = Probed(built, probed or {}, inputs=dict(trace.sizes))
    run = pins(trace, pinned, owned)
    classes = Classes(run.names, varying, owned or {}, probed or {})
    bound: dict[Whose, Bindings] = {}
    found: list[Mismatch] = []
    for index, record in enumerate(trace.tensors):
        if record.declared is None:
            continue
        before = {**bound.get(whose_names(record), {}), **worths(record)}
        if record.declared.problem:
            found += _undecided(trace, index, before)
        elif record.holds is False:
            found.append(explain_refusal(trace, index, before))
        else:
            after = _bind(trace, index, before)
            bound[whose_names(record)] = after
            if record.holds:
                found += run.check(trace, index, before, after)
                found += agreement.check(trace, index)
                found += classes.check(trace, index, before, after)
    found += classes.finish(trace)
    return _folded(trace, found)


def _bind(trace: Trace, index: int, before: Bindings) -> Bindings:
    """The bindings after a value that fits, by the first alternative that explains it."""
    record = trace.tensors[index]
    for shape in record.declared.shapes if record.declared else ():
        if not reasons(trace, index, shape, before):
            return fit(parse_dims(shape.dims), record.shape, before, index)[0]
    return before


def _undecided(trace: Trace, index: int, before: Bindings) -> list[Mismatch]:
    """Findings about a value that jaxtyping could not judge."""
    declared = trace.tensors[index].declared
    shapes = declared.shapes if declared else ()
    if any(
        one.kind == "unbound" for shape in shapes for one in reasons(trace, index, shape, before)
    ):
        return [explain_refusal(trace, index, before)]
    return _unresolved(trace, index)


def _unresolved(trace: Trace, index: int) -> list[Mismatch]:
    """The finding that an annotation says nothing; a ragged tensor's says what it can."""
    record = trace.tensors[index]
    if record.layout or record.declared is None:
        return []
    where = place_of(trace, record)
    line = f"the annotation cannot be evaluated in {where}: {record.declared.problem}"
    fix = "import or correct its names; until then nothing checks it"
    text = record.declared.text
    return [finding(trace, index, "unresolved", (line,), annotated=text, fix=fix)]


def _folded(trace: Trace, found: list[Mismatch]) -> list[Mismatch]:
    """Findings with those of other calls of the same code folded into the first."""
    groups: dict[tuple[object, ...], list[Mismatch]] = {}
    for mismatch in found:
        groups.setdefault(tuple(_likeness(trace, mismatch)), []).append(mismatch)
    return [
        replace(group[0], calls=len({trace.tensors[mismatch.tensor].scope for mismatch in group}))
        for group in groups.values()
    ]


def _likeness(trace: Trace, mismatch: Mismatch) -> Iterator[object]:
    """What two findings share when they differ only in the call."""
    record = trace.tensors[mismatch.tensor]
    yield from (mismatch.kind, record.site, record.element, mismatch.observed, mismatch.fix)
    digits = str.maketrans("", "", "0123456789")
    yield from (line.translate(digits) for line in mismatch.reasons)
