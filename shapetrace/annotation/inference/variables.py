"""Annotations for a function's variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shapetrace.annotation.inference.shapes import annotation_of
from shapetrace.annotation.plan.annotation import Array
from shapetrace.annotation.plan.plans import LeftOut, LocalPlan

if TYPE_CHECKING:
    from shapetrace.annotation.inference.axes import AxisNames
    from shapetrace.annotation.inference.bindings import BoundPlace
    from shapetrace.annotation.inference.calls import ObservedCall, ObservedTensor
    from shapetrace.annotation.inference.signatures import SourceSignature

_CONTAINER = "holds tensors inside a container, of which runs tell no more for a variable"
_MANY = "is bound to tensors of several shapes, for which one annotation would say nothing"


def plan_locals(
    signature: SourceSignature,
    calls: Sequence[ObservedCall],
    names: AxisNames,
    *,
    every: bool = False,
    exact: bool = False,
    replace: bool = False,
    unrun: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[LocalPlan | LeftOut]:
    """Annotations where variables are bound to tensors.

    Args:
        signature: The function.
        calls: Its calls.
        names: Its axis names, after parameters and return.
        every: Whether each assignment gets one, or the first of each variable alone.
        exact: Whether a lone dtype is written exactly.
        replace: Whether variables that have an annotation are planned too.
        unrun: By variable, the lines of its bindings that did not run.
    """
    parameters = {parameter.name for parameter in signature.parameters}
    for binding in _chosen(signature.bindings, calls, parameters, every=every, replace=replace):
        whole = binding.form == "before"  # a declaration speaks of every later binding
        if whole and unrun and binding.name in unrun:
            line = unrun[binding.name][0]
            reason = f"is bound anew in line {line}, which did not run"
            yield LeftOut("", signature.line, signature.qualname, binding.name, reason)
            continue
        tensors = _tensors(binding, calls, whole=whole)
        seen = [one for in_call in tensors.values() for one in in_call]
        if any(one.steps for one in seen):
            yield LeftOut("", signature.line, signature.qualname, binding.name, _CONTAINER)
        elif seen:
            annotation = annotation_of(tensors, names, binding.name, firm=False, exact=exact)
            if isinstance(annotation, Array) and not {"_", "..."} & set(annotation.axes):
                yield LocalPlan(binding.line, binding.name, annotation)
            else:
                yield LeftOut("", signature.line, signature.qualname, binding.name, _MANY)


def _chosen(
    bindings: Sequence[BoundPlace],
    calls: Sequence[ObservedCall],
    parameters: set[str],
    *,
    every: bool,
    replace: bool,
) -> Iterator[BoundPlace]:
    ran = {place for call in calls for place in call.locals}
    annotated = {binding.name for binding in bindings if binding.form == "annotated"}
    plain = {binding.name for binding in bindings if binding.form == "plain"}
    done: set[str] = set()
    for binding in bindings:
        name = binding.name
        if (binding.line, name) not in ran or binding.form == "none":
            continue
        if binding.form == "annotated" and not replace:
            continue
        if binding.form != "annotated" and not every and name in annotated | done | parameters:
            continue
        if binding.form == "before" and (name in done | annotated or (every and name in plain)):
            continue
        done.add(name)
        yield binding


def _tensors(
    binding: BoundPlace, calls: Sequence[ObservedCall], *, whole: bool
) -> dict[int, list[ObservedTensor]]:
    found: dict[int, list[ObservedTensor]] = {}
    for number, call in enumerate(calls):
        for (line, name), seen in call.locals.items():
            if name == binding.name and (whole or line == binding.line):
                found.setdefault(number, []).extend(seen)
    return found
