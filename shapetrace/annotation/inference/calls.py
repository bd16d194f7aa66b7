"""Traces as calls: for each function, what each call of it was given and gave back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from shapetrace.records.trace import Shape, TensorRecord, Trace

PathSteps: TypeAlias = tuple[str, ...]
_STEP = re.compile(r"\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\]])*\]|\.\w+")


@dataclass(frozen=True, slots=True)
class ObservedTensor:
    """A tensor that stood somewhere in a call.

    Attributes:
        names: A name or an expression per axis; None where nothing but the number is known.
        shape: Sizes.
        dtype: Torch's name without the prefix.
        steps: The way into the container that held it.
        sized: Whether its sizes are plain numbers (not those of a ragged tensor).
    """

    names: tuple[str | None, ...]
    shape: Shape
    dtype: str
    steps: PathSteps = ()
    sized: bool = True


@dataclass(slots=True)
class ObservedCall:
    """One call of a function.

    Attributes:
        values: By parameter's name, or ``return``: the tensors in it.
        locals: By line and name: the tensors that were bound there, in order.
        owned: The whole numbers that the object holds whose method it is.
    """

    values: dict[str, list[ObservedTensor]] = field(default_factory=dict)
    locals: dict[tuple[int, str], list[ObservedTensor]] = field(default_factory=dict)
    owned: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedFunction:
    """A function that ran."""

    file: str
    line: int
    qualname: str


Owned: TypeAlias = Mapping[str, Mapping[str, int]]
"""By path of a module, the whole numbers that it holds itself."""


def calls_of(
    traces: Iterable[Trace], files: Collection[str], owned: Sequence[Owned] = ()
) -> dict[ObservedFunction, list[ObservedCall]]:
    """The calls of the functions of some files, in all traces.

    A call in which no tensor was bound is not in a trace and so not here.

    Args:
        traces: The runs.
        files: The files.
        owned: For each run, what its modules hold.
    """
    found: dict[ObservedFunction, list[ObservedCall]] = {}
    for number, trace in enumerate(traces):
        held = owned[number] if number < len(owned) else {}
        calls: dict[int, ObservedCall] = {}
        for record in trace.tensors:
            site, scope = trace.sites[record.site], trace.scopes[record.scope]
            if scope.file != site.file or site.file not in files or site.kind == "attribute":
                continue
            if record.scope not in calls:
                function = ObservedFunction(scope.file, scope.line, site.function)
                is_method = "." in site.function
                calls[record.scope] = ObservedCall(
                    owned=held.get(_owner(scope.path), {}) if is_method else {}
                )
                found.setdefault(function, []).append(calls[record.scope])
            _add(calls[record.scope], site.kind, site.line, site.name, _seen(record))
    return found


def _owner(path: str) -> str:
    """Path of the module whose code runs in a scope."""
    return ".".join(part for part in path.split(".") if not part.endswith("()"))


def _add(call: ObservedCall, kind: str, line: int, name: str, seen: ObservedTensor) -> None:
    if kind == "local":
        call.locals.setdefault((line, name), []).append(seen)
    else:
        call.values.setdefault(name, []).append(seen)


def _seen(record: TensorRecord) -> ObservedTensor:
    sized = record.layout != "jagged" and all(size >= 0 for size in record.shape)
    return ObservedTensor(
        _names(record), record.shape, record.dtype, path_steps(record.element), sized
    )


def _names(record: TensorRecord) -> tuple[str | None, ...]:
    if record.dims is None or len(record.dims) != len(record.shape):
        return (None,) * len(record.shape)
    return tuple(
        None if dim.evidence == "literal" or dim.name.isdigit() else dim.name.replace(" ", "")
        for dim in record.dims
    )


def path_steps(element: str) -> PathSteps:
    """The single steps of a way into a container: ``[0].logits`` is two."""
    return tuple(_STEP.findall(element))
