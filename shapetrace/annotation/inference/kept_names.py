"""Names of annotations that stay: what is written beside them follows them.

Where ``x: Float[Tensor, "b t c"]`` stays, and runs tell that its axes are ``B n d_model``, the
rest of the function, and of its class, says ``b``, ``t`` and ``c`` for these too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from shapetrace.annotation.inference.calls import ObservedCall, ObservedFunction, ObservedTensor
from shapetrace.dims import Named, align, parse_dims
from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from shapetrace.annotation.inference.signatures import SourceSignature

KeptNames: TypeAlias = dict[str, str]
"""By what runs call a quantity, what annotations that stay call it."""
_DIMS = re.compile(r"""\bTensor, *\\?(['"])([^'"\\]*)""")
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def following(
    signatures: Mapping[ObservedFunction, SourceSignature],
    calls: Mapping[ObservedFunction, Sequence[ObservedCall]],
) -> dict[ObservedFunction, list[ObservedCall]]:
    """The calls, with axes named as annotations that stay name them.

    Args:
        signatures: The functions as their source has them.
        calls: Their calls, named by runs.
    """
    own = {f: [_given(one, call) for call in calls[f]] for f, one in signatures.items()}
    shared = {owner: _agreed(own, owner) for owner in {_owner(function) for function in own}}
    return {
        function: [
            _renamed(call, {**shared[_owner(function)], **names})
            for call, names in zip(calls[function], given, strict=True)
        ]
        for function, given in own.items()
    }


def _owner(function: ObservedFunction) -> str:
    """The class that a function belongs to; empty for none."""
    return function.qualname.rpartition(".")[0]


def _agreed(own: Mapping[ObservedFunction, Sequence[KeptNames]], owner: str) -> KeptNames:
    """What all functions of a class that speak of a quantity call it."""
    said: dict[str, set[str]] = {}
    for function, given in own.items():
        if owner and _owner(function) == owner:
            for name, kept in (pair for names in given for pair in names.items()):
                said.setdefault(name, set()).add(kept)
    return {name: kept.pop() for name, kept in said.items() if len(kept) == 1}


def _given(signature: SourceSignature, call: ObservedCall) -> KeptNames:
    found: KeptNames = {}
    places = [(one.name, one.annotation) for one in signature.parameters if one.kind == "plain"]
    for place, annotation in (*places, ("return", signature.returns)):
        for seen in call.values.get(place, ()):
            for name, kept in _pairs(annotation, seen):
                found.setdefault(name, kept)
    return found


def _pairs(annotation: str, seen: ObservedTensor) -> Iterator[tuple[str, str]]:
    """What runs call each axis of a lone tensor, beside what its annotation calls it."""
    declared = _DIMS.findall(annotation)
    if seen.steps or len(declared) != 1:
        return
    try:
        axes = parse_dims(declared[0][1])
    except ShapetraceError:  # jaxtyping refuses it too
        return
    for number, axis, _ in align(axes, seen.shape) or ():
        name = seen.names[number] if number < len(seen.names) else None
        if isinstance(axis, Named) and not axis.broadcastable and name is not None:
            yield name, axis.name


def _renamed(call: ObservedCall, names: KeptNames) -> ObservedCall:
    if not names:
        return call

    def one(seen: ObservedTensor) -> ObservedTensor:
        return replace(seen, names=tuple(_translated(name, names) for name in seen.names))

    return ObservedCall(
        {place: [one(seen) for seen in found] for place, found in call.values.items()},
        {place: [one(seen) for seen in found] for place, found in call.locals.items()},
        call.owned,
    )


def _translated(name: str | None, names: KeptNames) -> str | None:
    """A name, or an expression, in other words."""
    if name is None or name in names:
        return None if name is None else names[name]
    return _WORD.sub(lambda word: names.get(word[0], word[0]), name)
