"""Give every recorded dimension its name, and say where the name comes from.

Two sources: what the source declares (an annotation that held), and what probes saw (runs
of the same model with one size changed). Where neither speaks, an attribute of the module
whose code made the tensor, and last the number itself. A size that merely equals a name is
never given that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from shapetrace.dims import Dim, evaluate, names_in
from shapetrace.dims.expressions import ExpressionError
from shapetrace.dims.naming import name_axis
from shapetrace.dims.roughly import name_roughly
from shapetrace.trace.declared import declared_dims
from shapetrace.trace.probing import Key, Observation, Probing, keyed
from shapetrace.trace.records import ParameterRecord, Shape, TensorRecord, Trace

__all__ = ["Key", "Observation", "Probing", "in_first_layer", "keyed", "named"]


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
AxisRun = tuple[str, Observation, int]
"""The same of one axis."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The runs that saw a thing; `apart`, with axes that run only together moved alone."""

    together: list[Run]
    apart: list[Run]

    def axis(self, axis: int) -> tuple[tuple[AxisRun, ...], tuple[AxisRun, ...]]:
        return _of_axis(self.together, axis), _of_axis(self.apart, axis)


def _of_axis(runs: Sequence[Run], axis: int) -> tuple[AxisRun, ...]:
    return tuple((name, run, shape[axis]) for name, run, shape in runs)


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
    ) -> _Seen | None:
        """The probes that saw the thing; None when the first run saw it otherwise or not."""
        base = self.probing.base
        if base is None or table(base).get(key) != shape:
            return None

        def found(name: str, runs: Sequence[Observation]) -> list[Run]:
            shapes = ((run, table(run).get(key)) for run in runs)
            return [(name, run, s) for run, s in shapes if s is not None and len(s) == len(shape)]

        moved = {name: found(name, runs) for name, runs in self.probing.moved.items()}
        joint = found(JOINT, [self.probing.joint] if self.probing.joint is not None else [])
        together = [run for runs in moved.values() for run in runs] + joint
        apart: list[Run] = []
        for name, members in self.probing.apart.items():
            alone = [found(member, runs) for member, runs in members.items()]
            if all(alone):
                others = [run for run in together if run[0] != name]
                apart = [run for runs in alone for run in runs] + others
        return _Seen(together, apart)

    def _dims(self, shape: Shape, seen: _Seen | None, path: str) -> tuple[Dim, ...]:
        return tuple(
            self._unprobed(size, path) if seen is None else self._probed(size, seen, axis, path)
            for axis, size in enumerate(shape)
        )

    def _probed(self, size: int, seen: _Seen, axis: int, path: str) -> Dim:
        together, apart = seen.axis(axis)
        moved = tuple((name, run.sizes.get(name, 0), other) for name, run, other in together)
        alone = tuple((name, run.sizes.get(name, 0), other) for name, run, other in apart)
        owners = tuple(_owners(path))
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
        dim, moved = self._expressed(size, runs)
        if apart and not (dim.evidence == "probe" and all(_holds(dim.name, r) for r in together)):
            runs = together
            dim, moved = self._expressed(size, runs)
        if dim.evidence == "literal":
            return (None if moved else self._held(size, owners, runs)) or dim
        dim = self._with_company(dim)
        if not dim.name.isidentifier():
            dim = self._called(dim, size, runs, owners)
        elif dim.name in self.probing.inputs:
            guessed = self.probing.inputs[dim.name]
            dim = replace(dim, evidence="guess" if guessed else "probe")
        return self._aliased(dim)

    def _expressed(self, size: int, runs: Sequence[AxisRun]) -> tuple[Dim, bool]:
        """An axis as an expression of what moves it, and whether anything does."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        probes: dict[str, dict[int | Fraction, int]] = {}
        for name, run, other in runs:
            if name != JOINT:
                probes.setdefault(name, {})[Fraction(run.sizes[name], base.sizes[name])] = other
        found = name_axis(size, probes, base.sizes)
        dim = found.dim
        if found.moved_by and dim.evidence == "literal":
            dim = name_roughly(size, probes, base.sizes) or dim
        return _foretold(dim, size, runs), bool(found.moved_by)

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
                best = min(names, key=lambda name: (len(name), name))
                return Dim(best, "probe", f"{dim.name}, kept as self.{best}; {dim.detail}")
        anywhere = {name for owner in base.attributes for name in _fitting(every, owner)}
        if len(anywhere) == 1:
            best = anywhere.pop()
            return Dim(best, "probe", f"{dim.name}, kept as {best} elsewhere; {dim.detail}")
        return dim

    def _with_company(self, dim: Dim) -> Dim:
        """Says of a name that it never moved alone."""
        others = {name: self.probing.tied.get(name) for name in names_in(dim.name)}
        told = [
            f"{name} moves only with {', '.join(with_)}" for name, with_ in others.items() if with_
        ]
        return replace(dim, detail="; ".join([dim.detail, *told])) if told else dim

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
                return Dim(names[0], "attribute", detail)
        fitting = [name for name, given in self.probing.given.items() if given == size]
        if len(fitting) == 1 and all(other == size for _, _, other in runs):
            return Dim(fitting[0], "attribute", f"equals {fitting[0]} among the names given")
        return None


SMALLEST = 3
"""Attributes that are 1 or 2 are too many to tell anything."""

JOINT = ""
"""Stands for a name in the run with all sizes changed."""


def _holds(text: str, run: AxisRun) -> bool:
    """Whether an expression gives what a run saw of an axis."""
    _, seen, size = run
    try:
        return evaluate(text, seen.sizes) == size
    except ExpressionError:
        return False


def _foretold(dim: Dim, size: int, runs: Sequence[AxisRun]) -> Dim:
    """A name that holds with all sizes changed too; else the number, and why."""
    for run in runs:
        if run[0] == JOINT and dim.evidence != "literal" and not _holds(dim.name, run):
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
