"""Give every recorded dimension its name, and say where the name comes from.

Two sources: what the source declares (an annotation that held), and what probes saw (runs
of the same model with one size changed). Where neither speaks, an attribute of the module
whose code made the tensor, and last the number itself. A size that merely equals a name is
never given that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from shapetrace.dims import Dim, evaluate
from shapetrace.dims.naming import name_axis
from shapetrace.dims.roughly import name_roughly
from shapetrace.trace.declared import declared_dims
from shapetrace.trace.records import (
    ParameterRecord,
    Scope,
    Shape,
    Site,
    TensorRecord,
    Trace,
)

Key = tuple[str, str, int, str, str, int]
"""Path of the call, file, line, name, element, and which time round."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run of a model saw.

    Attributes:
        sizes: The sizes it ran at, inputs' and integers'.
        shapes: Every recorded shape.
        parameters: Every parameter's and buffer's shape, by path.
        attributes: The integers that each module of the user's holds, by path and name.
    """

    sizes: Mapping[str, int]
    shapes: Mapping[Key, Shape]
    parameters: Mapping[str, Shape]
    attributes: Mapping[str, Mapping[str, int]]


@dataclass(slots=True)
class Probing:
    """All that the probes of a model saw.

    Attributes:
        base: The run at the sizes of the real run; None when no probe could run.
        moved: By name, the runs with that size changed.
        joint: A run with all of them changed; None when none succeeded.
        irrelevant: Names that moved nothing.
        inputs: The names of the inputs' dims, and whether each was guessed.
        tied: By name, the names that were changed with it, because none of them runs alone.
        given: Sizes that the user named and no input has: the model's own.
        notes: What could not be probed, and why.
    """

    base: Observation | None
    moved: dict[str, list[Observation]] = field(default_factory=dict)
    joint: Observation | None = None
    irrelevant: set[str] = field(default_factory=set)
    inputs: dict[str, bool] = field(default_factory=dict)
    tied: dict[str, tuple[str, ...]] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def keyed(
    scopes: Sequence[Scope], sites: Sequence[Site], tensors: Sequence[TensorRecord]
) -> Iterator[tuple[Key, TensorRecord]]:
    """Each record with the key under which another run of the same model has it."""
    times: dict[tuple[str, str, int, str, str], int] = {}
    for record in tensors:
        site = sites[record.site]
        place = (scopes[record.scope].path, site.file, site.line, site.name, record.element)
        times[place] = times.get(place, -1) + 1
        yield (*place, times[place]), record


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
    tensors = tuple(
        replace(record, dims=namer.of_record(key, record))
        for key, record in keyed(trace.scopes, trace.sites, trace.tensors)
    )
    parameters = tuple(
        replace(parameter, dims=namer.of_parameter(parameter)) for parameter in trace.parameters
    )
    notes = trace.notes + tuple(probing.notes if probing is not None else ())
    return replace(trace, tensors=tensors, parameters=parameters, notes=notes)


Run = tuple[str, Observation, Shape]
"""A probe that saw the same thing: the name that it changed, all it saw, the thing's shape."""


class _Namer:
    """Names axes from probes; equal evidence is worked out once."""

    def __init__(self, probing: Probing, aliases: Mapping[str, str]) -> None:
        self.probing = probing
        self.aliases = aliases
        self._known: dict[tuple[object, ...], Dim] = {}

    def of_record(self, key: Key, record: TensorRecord) -> tuple[Dim, ...]:
        runs = self._runs(key, record.shape, lambda run: run.shapes)
        if runs is None:
            first = (in_first_layer(key[0]), *key[1:])
            runs = self._runs(first, record.shape, lambda run: run.shapes)
        declared = declared_dims(record) or (None,) * len(record.shape)
        probed = self._dims(record.shape, runs, key[0])
        return tuple(map(_agreed, declared, probed))

    def of_parameter(self, parameter: ParameterRecord) -> tuple[Dim, ...]:
        runs = self._runs(parameter.path, parameter.shape, lambda run: run.parameters)
        if runs is None:
            first = in_first_layer(parameter.path)
            runs = self._runs(first, parameter.shape, lambda run: run.parameters)
        return self._dims(parameter.shape, runs, parameter.path.rpartition(".")[0])

    def _runs(
        self, key: _AnyKey, shape: Shape, table: Callable[[Observation], Mapping[_AnyKey, Shape]]
    ) -> list[Run] | None:
        """The probes that saw the thing; None when the first run saw it otherwise or not."""
        base = self.probing.base
        if base is None or table(base).get(key) != shape:
            return None
        seen = [(name, run) for name, runs in self.probing.moved.items() for run in runs]
        if self.probing.joint is not None:
            seen.append((JOINT, self.probing.joint))
        shapes = ((name, run, table(run).get(key)) for name, run in seen)
        return [
            (name, run, other)
            for name, run, other in shapes
            if other is not None and len(other) == len(shape)
        ]

    def _dims(self, shape: Shape, runs: list[Run] | None, path: str) -> tuple[Dim, ...]:
        return tuple(
            self._unprobed(size, path)
            if runs is None
            else self._probed(size, [(name, run, other[axis]) for name, run, other in runs], path)
            for axis, size in enumerate(shape)
        )

    def _probed(self, size: int, runs: list[tuple[str, Observation, int]], path: str) -> Dim:
        moved = tuple((name, run.sizes.get(name, 0), other) for name, run, other in runs)
        owners = tuple(_owners(path))
        key = (size, moved, owners)
        if key not in self._known:
            self._known[key] = self._worked_out(size, runs, owners)
        return self._known[key]

    def _worked_out(
        self, size: int, runs: list[tuple[str, Observation, int]], owners: tuple[str, ...]
    ) -> Dim:
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        probes: dict[str, dict[int | Fraction, int]] = {}
        for name, run, other in runs:
            if name != JOINT:
                probes.setdefault(name, {})[Fraction(run.sizes[name], base.sizes[name])] = other
        found = name_axis(size, probes, base.sizes)
        if found.moved_by and found.dim.evidence == "literal":
            dim = _foretold(name_roughly(size, probes, base.sizes) or found.dim, size, runs)
        else:
            dim = _foretold(found.dim, size, runs)
        if dim.evidence == "literal":
            return (None if found.moved_by else self._held(size, owners, runs)) or dim
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
        runs: list[tuple[str, Observation, int]],
        owners: tuple[str, ...],
    ) -> Dim:
        """An expression by the name of the module's attribute that equals it in every run."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        every = [(base, size), *((run, other) for _, run, other in runs)]
        for owner in owners:
            names = _fitting(every, owner)
            if names:
                best = min(names, key=lambda name: (len(name), name))
                return Dim(best, "probe", f"{dim.name}, kept as self.{best}; {dim.detail}")
        anywhere = {name for owner in base.attributes for name in _fitting(every, owner)}
        if len(anywhere) == 1:
            best = anywhere.pop()
            return Dim(best, "probe", f"{dim.name}, kept as {best} elsewhere; {dim.detail}")
        return dim

    def _aliased(self, dim: Dim) -> Dim:
        if not self.aliases:
            return dim
        name = re.sub(r"[A-Za-z_]\w*", lambda word: self.aliases.get(word[0], word[0]), dim.name)
        return replace(dim, name=name)

    def _unprobed(self, size: int, path: str) -> Dim:
        """What an attribute of the module says, if just one has this size; else the number."""
        return self._held(size, tuple(_owners(path)), []) or Dim(
            str(size), "literal", "not seen in any probe"
        )

    def _held(
        self,
        size: int,
        owners: tuple[str, ...],
        runs: Sequence[tuple[str, Observation, int]],
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
                return Dim(names[0], "attribute", detail)
        fitting = [name for name, given in self.probing.given.items() if given == size]
        if len(fitting) == 1 and all(other == size for _, _, other in runs):
            return Dim(fitting[0], "attribute", f"equals {fitting[0]} among the names given")
        return None


SMALLEST = 3
"""Attributes that are 1 or 2 are too many to tell anything."""

JOINT = ""
"""Stands for a name in the run with all sizes changed."""


def _foretold(dim: Dim, size: int, runs: Sequence[tuple[str, Observation, int]]) -> Dim:
    """A name that holds with all sizes changed too; else the number, and why."""
    for name, run, other in runs:
        if name == JOINT and dim.evidence != "literal" and evaluate(dim.name, run.sizes) != other:
            reason = f"{dim.name} fits each size moved alone, but not all of them together"
            return Dim(str(size), "literal", reason)
    return dim


def _fitting(every: Sequence[tuple[Observation, int]], owner: str) -> list[str]:
    """A module's attributes that equal an axis in every run."""
    names = every[0][0].attributes.get(owner, {})
    return [
        name
        for name in names
        if all(run.attributes.get(owner, {}).get(name) == size for run, size in every)
    ]


_AnyKey = TypeVar("_AnyKey", Key, str)


def _agreed(declared: Dim | None, probed: Dim) -> Dim:
    """What the source declares, with what the probes found beside it when they differ."""
    if declared is None:
        return probed
    if probed.evidence == "probe" and probed.name != declared.name:
        return replace(declared, detail=f'declared "{declared.detail}"; probed: {probed.name}')
    return replace(declared, detail=f'declared "{declared.detail}"')


def in_first_layer(path: str) -> str:
    """The path of the same thing in the first of equal layers: ``blocks.7.wq`` to ``blocks.0.wq``."""
    return re.sub(r"(?<![\w])\d+(?![\w])", "0", path)


def _owners(path: str) -> Iterator[str]:
    """The module that a scope belongs to, and the modules around it, innermost first."""
    parts = [part for part in path.split(".") if part and not part.endswith("()")]
    for end in range(len(parts), -1, -1):
        yield ".".join(parts[:end])
