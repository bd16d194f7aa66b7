"""Give every recorded dimension its name, and say where the name comes from.

Two sources: what the source declares (an annotation that held), and what probes saw (runs
of the same model with one size changed). Where neither speaks, an attribute of the module
whose code made the tensor, and last the number itself. A size that merely equals a name is
never given that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.dims import Dim, evaluate, names_in
from shapetrace.errors import nearest
from shapetrace.naming.declared import declared_dims
from shapetrace.naming.evidence import AxisRun, Sightings, holds_in_run, seen_by, spread_squares
from shapetrace.naming.expressions import Expressions
from shapetrace.naming.observations import (
    Observation,
    Probing,
    TensorKey,
    in_first_layer,
    keyed,
)

if TYPE_CHECKING:
    from shapetrace.records.trace import ParameterRecord, Shape, TensorRecord, Trace

__all__ = ["Observation", "Probing", "TensorKey", "in_first_layer", "keyed", "named"]


def named(
    trace: Trace, probing: Probing | None = None, aliases: Mapping[str, str] | None = None
) -> Trace:
    """The trace with a meaning for every axis of every tensor and parameter.

    Args:
        trace: As recorded.
        probing: What probes of the same model saw; None when there were none.
        aliases: Other names to use for probed ones: ``{"hidden_size": "d_model"}``.

    Returns:
        The same trace with `dims` filled in. An annotation that held comes first; what the
        probes say of the same axis is kept in its detail when it differs.
    """
    namer = _Namer(probing or Probing(None), dict(aliases or {}))
    makers = _makers(trace)
    tensors = tuple(
        replace(record, dims=namer.of_record(key, record, maker))
        for maker, (key, record) in zip(
            makers, keyed(trace.scopes, trace.sites, trace.tensors), strict=True
        )
    )
    parameters = tuple(
        replace(parameter, dims=namer.of_parameter(parameter)) for parameter in trace.parameters
    )
    notes = (*trace.notes, *(probing.notes if probing is not None else ()), *namer.unused())
    return replace(trace, tensors=tensors, parameters=parameters, notes=notes)


def _makers(trace: Trace) -> Iterator[str]:
    """For each tensor, the path of the call that made it: not of one it was handed to."""
    first: dict[tuple[int, Shape], str] = {}
    for record in trace.tensors:
        path = trace.scopes[record.scope].path
        block = record.storage
        yield path if block is None else first.setdefault((block, record.shape), path)


class _Namer:
    """Names axes from probes; equal evidence is worked out once."""

    def __init__(self, probing: Probing, aliases: Mapping[str, str]) -> None:
        self.probing = probing
        self.aliases = aliases
        self._known: dict[tuple[object, ...], Dim] = {}
        self._expressions = Expressions(probing)
        self._used: set[str] = set()

    def unused(self) -> Iterator[str]:
        """What to say of names that the user gave and that no axis came to have."""
        base = self.probing.base
        if base is None:
            return
        for name in self.aliases:
            if name not in base.sizes and name not in self._used:
                near = nearest(name, [*base.sizes])
                hint = f"; did you mean `{near[0]}`?" if near else ""
                yield f"there is no `{name}` to be called `{self.aliases[name]}`{hint}"
        for name, size in self.probing.given.items():
            if name not in self._used:
                yield f"`{name}` names no axis: nothing that is known to be fixed has size {size}"

    def of_record(self, key: TensorKey, record: TensorRecord, maker: str) -> tuple[Dim, ...]:
        key = self.probing.equals.get(key, key)
        runs = seen_by(self.probing, key, record.shape, lambda run: run.shapes)
        if runs is None:
            first = (in_first_layer(key[0]), *key[1:])
            runs = seen_by(self.probing, first, record.shape, lambda run: run.shapes)
        declared = declared_dims(record) or (None,) * len(record.shape)
        probed = self._dims(record.shape, runs, maker)
        return tuple(map(_agreed, declared, probed))

    def of_parameter(self, parameter: ParameterRecord) -> tuple[Dim, ...]:
        path = self.probing.equal_parameters.get(parameter.path, parameter.path)
        runs = seen_by(self.probing, path, parameter.shape, lambda run: run.parameters)
        if runs is None:
            first = in_first_layer(parameter.path)
            runs = seen_by(self.probing, first, parameter.shape, lambda run: run.parameters)
        return self._dims(parameter.shape, runs, parameter.path.rpartition(".")[0])

    def _dims(self, shape: Shape, seen: Sightings | None, path: str) -> tuple[Dim, ...]:
        return tuple(
            self._unprobed(size, path) if seen is None else self._probed(size, seen, axis, path)
            for axis, size in enumerate(shape)
        )

    def _probed(self, size: int, seen: Sightings, axis: int, path: str) -> Dim:
        together, apart = seen.axis(axis)
        moved = tuple((name, run.sizes.get(name, 0), other) for name, run, other in together)
        alone = tuple((name, run.sizes.get(name, 0), other) for name, run, other in apart)
        owners = tuple(self._owners(path))
        key = (size, moved, alone, owners)
        if key not in self._known:
            self._known[key] = self._worked_out(size, together, apart, owners)
        return self._known[key]

    def _worked_out(
        self,
        size: int,
        together: Sequence[AxisRun],
        apart: Sequence[AxisRun],
        owners: tuple[str, ...],
    ) -> Dim:
        runs = apart or together
        dim, moved = self._expressions.of_axis(size, runs)
        if apart and not (
            dim.evidence == "probe" and all(holds_in_run(dim.name, r) for r in together)
        ):
            runs = together
            dim, moved = self._expressions.of_axis(size, runs)
        if dim.evidence == "literal":
            held = None if moved else self._held(size, owners, runs)
            return self._aliased(held) if held is not None else self._hinted(dim, size)
        dim = self._with_company(self._along_both(dim, size))
        if not dim.name.isidentifier():
            dim = self._called(dim, size, runs, owners)
        elif dim.name in self.probing.inputs:
            guessed = self.probing.inputs[dim.name]
            dim = replace(dim, evidence="guess" if guessed else "probe")
        return self._aliased(dim)

    def _called(
        self,
        dim: Dim,
        size: int,
        runs: Sequence[AxisRun],
        owners: tuple[str, ...],
    ) -> Dim:
        """An expression by the name of the module's attribute that equals it in every run."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        every = [(base, size), *((run, other) for _, run, other in runs)]
        for owner in owners:
            names = _fitting(every, owner)
            if names:
                configured = [name for name in names if name in base.config]
                best = min(configured or names, key=lambda name: (len(name), name))
                return Dim(best, "probe", f"{dim.name}, kept as self.{best}; {dim.detail}")
        anywhere = {name for owner in base.attributes for name in _fitting(every, owner)}
        if len(anywhere) == 1:
            best = anywhere.pop()
            return Dim(best, "probe", f"{dim.name}, kept as {best} elsewhere; {dim.detail}")
        return dim

    def _hinted(self, dim: Dim, size: int) -> Dim:
        """Says of a number that it may be an axis which the user wrote as a number."""
        places = [place for place, given in self.probing.unnamed.items() if given == size]
        if not places:
            return dim
        hint = f"{' and '.join(places)} of the inputs is {size} without a name, and stays"
        return replace(dim, detail=f"{dim.detail}; {hint}")

    def _along_both(self, dim: Dim, size: int) -> Dim:
        """A square of what moves only with one other axis, as the product of the two.

        `(H//p)**2`, where `H` stands for `W` too, is what was `(H//p)*(W//p)` before the
        model refused other images than square ones.
        """
        base = self.probing.base
        assert base is not None  # noqa: S101 - there is a name to spread
        for axes in self.probing.apart.values():
            if len(axes) == 2:  # noqa: PLR2004 - a square has two sides
                name = spread_squares(dim.name, *axes)
                if evaluate(name, base.sizes) == size:
                    dim = replace(dim, name=name)
        return dim

    def _with_company(self, dim: Dim) -> Dim:
        """Says of a name that it never moved alone."""
        others = {name: self.probing.tied.get(name) for name in names_in(dim.name)}
        told = [
            f"{name} moves only with {', '.join(with_)}" for name, with_ in others.items() if with_
        ]
        return replace(dim, detail="; ".join([dim.detail, *told])) if told else dim

    def _owners(self, path: str) -> Iterator[str]:
        """The module that a scope belongs to, and the modules around it, innermost first."""
        parts = [part for part in path.split(".") if part and not part.endswith("()")]
        known = self.probing.base.attributes if self.probing.base is not None else {}
        for end in range(len(parts), -1, -1):
            owner = ".".join(parts[:end])
            yield owner if owner in known else in_first_layer(owner)

    def _aliased(self, dim: Dim) -> Dim:
        self._used.update(names_in(dim.name))
        if not self.aliases:
            return dim
        name = re.sub(r"[A-Za-z_]\w*", lambda word: self.aliases.get(word[0], word[0]), dim.name)
        return replace(dim, name=name)

    def _unprobed(self, size: int, path: str) -> Dim:
        """What an attribute of the module says, if just one has this size; else the number."""
        held = self._held(size, tuple(self._owners(path)), [])
        unseen = Dim(str(size), "literal", "not seen in any probe")
        return self._aliased(held) if held is not None else unseen

    def _held(
        self,
        size: int,
        owners: tuple[str, ...],
        runs: Sequence[AxisRun],
    ) -> Dim | None:
        """The one attribute that has a size in every run; none for the size of an input."""
        base = self.probing.base
        if base is None or size < SMALLEST:
            return None
        if size in (base.sizes.get(name) for name in self.probing.inputs):
            return None
        every = [(base, size), *((run, other) for _, run, other in runs)]
        for owner in owners:
            names = _fitting(every, owner)
            if len(names) == 1:
                detail = f"equals self.{names[0]} of {owner or 'the model'}"
                return _configured(every, names[0]) or Dim(names[0], "attribute", detail)
        fitting = [name for name, given in self.probing.given.items() if given == size]
        if len(fitting) == 1 and all(other == size for _, _, other in runs):
            return Dim(fitting[0], "attribute", f"equals {fitting[0]} among the names given")
        return None


SMALLEST = 3
"""Attributes that are 1 or 2 are too many to tell anything."""


def _fitting(every: Sequence[tuple[Observation, int]], owner: str) -> list[str]:
    """A module's attributes that equal an axis in every run."""
    names = every[0][0].attributes.get(owner, {})
    return [
        name
        for name in names
        if all(run.attributes.get(owner, {}).get(name) == size for run, size in every)
    ]


def _configured(every: Sequence[tuple[Observation, int]], name: str) -> Dim | None:
    """The one field of the configuration that equals an axis, where a module's attribute is none.

    What a module works out for itself may be a ratio of two fields that merely equals another.
    """
    config = every[0][0].config
    if name in config:
        return None
    fitting = [
        field for field in config if all(run.config.get(field) == size for run, size in every)
    ]
    if len(fitting) != 1:
        return None
    return Dim(fitting[0], "attribute", f"equals {fitting[0]} of the model's configuration")


def _agreed(declared: Dim | None, probed: Dim) -> Dim:
    """What the source declares, with what the probes found beside it when they differ."""
    if declared is None:
        return probed
    if probed.evidence == "probe" and probed.name != declared.name:
        return replace(declared, detail=f'declared "{declared.detail}"; probed: {probed.name}')
    return replace(declared, detail=f'declared "{declared.detail}"')
