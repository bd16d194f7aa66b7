"""Traces as calls: for each function, what each call of it was given and gave back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from shapetrace.records.trace import Shape, TensorRecord, Trace

Steps: TypeAlias = tuple[str, ...]
_STEP = re.compile(r"\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\]])*\]|\.\w+")


@dataclass(frozen=True, slots=True)
class Seen:
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
    steps: Steps = ()
    sized: bool = True


@dataclass(slots=True)
class Call:
    """One call of a function.

    Attributes:
        values: By parameter's name, or ``return``: the tensors in it.
        locals: By line and name: the tensors that were bound there, in order.
        owned: The whole numbers that the object holds whose method it is.
    """

    values: dict[str, list[Seen]] = field(default_factory=dict)
    locals: dict[tuple[int, str], list[Seen]] = field(default_factory=dict)
    owned: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Function:
    """A function that ran."""

    file: str
    line: int
    qualname: str


Owned: TypeAlias = Mapping[str, Mapping[str, int]]
"""By path of a module, the whole numbers that it holds itself."""


def calls_of(
    traces: Iterable[Trace], files: Collection[str], owned: Sequence[Owned] = ()
) -> dict[Function, list[Call]]:
    """The calls of the functions of some files, in all traces.

    A call in which no tensor was bound is not in a trace and so not here.

    Args:
        traces: The runs.
        files: The files.
        owned: For each run, what its modules hold.
    """
    found: dict[Function, list[Call]] = {}
    for number, trace in enumerate(traces):
        held = owned[number] if number < len(owned) else {}
        calls: dict[int, Call] = {}
        for record in trace.tensors:
            site, scope = trace.sites[record.site], trace.scopes[record.scope]
            if scope.file != site.file or site.file not in files or site.kind == "attribute":
                continue
            if record.scope not in calls:
                function = Function(scope.file, scope.line, site.function)
                is_method = "." in site.function
                calls[record.scope] = Call(
                    owned=held.get(_owner(scope.path), {}) if is_method else {}
                )
                found.setdefault(function, []).append(calls[record.scope])
            _add(calls[record.scope], site.kind, site.line, site.name, _seen(record))
    return found


def _owner(path: str) -> str:
    """Path of the module whose code runs in a scope."""
    return ".".join(part for part in path.split(".") if not part.endswith("()"))


def _add(call: Call, kind: str, line: int, name: str, seen: Seen) -> None:
    if kind == "local":
        call.locals.setdefault((line, name), []).append(seen)
    else:
        call.values.setdefault(name, []).append(seen)


def _seen(record: TensorRecord) -> Seen:
    sized = record.layout != "jagged" and all(size >= 0 for size in record.shape)
    return Seen(_names(record), record.shape, record.dtype, steps_of(record.element), sized)


def _names(record: TensorRecord) -> tuple[str | None, ...]:
    if record.dims is None or len(record.dims) != len(record.shape):
        return (None,) * len(record.shape)
    return tuple(
        None if dim.evidence == "literal" or dim.name.isdigit() else dim.name.replace(" ", "")
        for dim in record.dims
    )


def steps_of(element: str) -> Steps:
    """The single steps of a way into a container: ``[0].logits`` is two."""
    return tuple(_STEP.findall(element))
