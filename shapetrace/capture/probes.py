"""Run a model again without weights, one size changed at a time, and see what moves.

A probe's records are found again by where they were made: the path of the call, the place
in the source, and which time round. So a probe in which a loop ran more often, or a branch
went the other way, still tells about all that it has in common with the first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import nn

from shapetrace.capture.assemble import assemble
from shapetrace.capture.calls import module_names
from shapetrace.capture.discover import Wanted, entered, joined, own_files
from shapetrace.capture.held import attributes, parameter_shapes
from shapetrace.capture.recorder import Recorder
from shapetrace.capture.settling import unsettled
from shapetrace.capture.sizes import (
    Group,
    deciding_sizes,
    labels,
    other_sizes,
    seems_shapeless,
    tied_groups,
)
from shapetrace.capture.subject import Subject
from shapetrace.capture.swap import swap
from shapetrace.capture.taps import activate
from shapetrace.capture.weightless import (
    Weightless,
    fake,
    is_small,
    meta,
    real,
    same_random_state,
)
from shapetrace.trace.naming import Observation, Probing, keyed
from shapetrace.trace.records import Shape


def probe(
    subject: Subject, report: Callable[[str], None] = lambda _: None
) -> tuple[Probing, Wanted]:
    """Run a subject weightless at its own sizes, then with each size changed.

    Where no weightless run succeeds (the model looks at values), small real runs are made.

    Args:
        subject: What to run.
        report: Called with the name of each size before it is probed.

    Returns:
        What was seen (`base` is None when no run succeeded), and the functions that the run
        enters, for the recording of the real one.
    """
    prober = _Prober(subject, report)
    return prober.probe(), prober.wanted


class _Prober:
    def __init__(self, subject: Subject, report: Callable[[str], None]) -> None:
        self.subject = subject
        self.report = report
        self.recorder = Recorder({}, operators=False)
        self.result = Probing(None, inputs=dict(subject.guessed), given=dict(subject.given))
        self.wanted: Wanted = {}
        self.weightless: Weightless = meta
        self._watched: Wanted = {}
        self.sizes = {**subject.integers, **subject.dims, **subject.loose}
        self._groups: dict[str, Group] = {}
        self.labels = labels([*subject.integers], [*subject.dims])

    def probe(self) -> Probing:
        if not self._enters():
            return self.result
        swapped = swap(self.wanted)
        try:
            self.result.base = self._observe({})
            if self.result.base is not None:
                self._probe_names()
        finally:
            swapped.undo()
        return self.result

    def _enters(self) -> bool:
        """Find the first way to run that works, and the functions that the run enters."""
        problems = []
        for weightless in (meta, fake, real):
            self.weightless = weightless
            try:
                if weightless is real and not self._may_be_real():
                    continue
                model = self._run({}, watch=entered)
            except Exception as error:  # noqa: BLE001 - any failure of the model rules this way out
                line = str(error).partition("\n")[0]
                problems.append(f"{weightless.__name__}: {type(error).__name__}: {line}")
            else:
                self.wanted = joined(self._watched, own_files(model))
                if weightless is real:
                    self.result.notes.append(f"names come from real runs ({'; '.join(problems)})")
                return True
        self.result.notes.append("dimensions were not probed (" + "; ".join(problems) + ")")
        return False

    def _may_be_real(self) -> bool:
        return is_small(lambda: self.subject.build(self.subject.integers))

    def _probe_names(self) -> None:
        names = [*self.subject.dims, *(self.subject.integers if self.subject.rebuilt else ())]
        quiet = [name for name in names if seems_shapeless(name)]
        if len(quiet) > 1 and self._moves_nothing(quiet):
            self.result.irrelevant.update(quiet)
        loud = [n for n in dict.fromkeys(names) if n not in self.result.irrelevant]
        # No factor moves a 0.
        stuck = [name for name in loud if self.sizes[name] and not self._probe_group((name,))]
        for name in self._untied(stuck):
            if self._probe_group((name,), last_resort=True):
                continue
            note = f"`{self._label(name)}` could not be probed: no other size of it runs"
            self.result.notes.append(note)
        self._settle()
        self._probe_jointly()

    def _untied(self, stuck: Sequence[str]) -> list[str]:
        """Probe together what does not run alone; what is left."""
        left = list(stuck)
        for group in tied_groups(stuck, [*self.subject.loose], self.sizes, [*self.subject.dims]):
            free = {*left, *self.subject.loose}
            if free.issuperset(group) and self._probe_group(group):
                left = [name for name in left if name not in group]
        return left

    def _settle(self) -> None:
        """Measure at one more size what several expressions still fit."""
        for label in unsettled(self.result):
            group = self._groups[label]
            seen = self.result.moved[label]
            known = {run.sizes[label] for run in seen}
            for size in deciding_sizes(self.sizes[group[0]]):
                if size not in known and (observation := self._at(group, size)) is not None:
                    seen.append(observation)
                    break

    def _probe_jointly(self) -> None:
        """One run with every size that matters changed: what the names must foretell."""
        changes: dict[str, int] = {}
        for label, seen in self.result.moved.items():
            group = self._groups[label]
            changes.update(self._scaled(group, seen[0].sizes[label]) or {})
        if len(self.result.moved) > 1:
            self.result.joint = self._observe(changes)

    def _moves_nothing(self, names: Sequence[str]) -> bool:
        seen = self._observe({name: 2 * self.sizes[name] for name in names})
        return seen is not None and not self._differs(seen)

    def _probe_group(self, group: Group, *, last_resort: bool = False) -> bool:
        """Double it, or treble it; as a last resort, try sizes that divide otherwise.

        A size that moved something, but not as a power of the factor, is probed at more
        points; so is one at which part of the first run's records did not appear.

        Args:
            group: A name, or several that are changed by one factor.
            last_resort: Whether neither doubling nor trebling runs, alone or with others.
                A size that then moves nothing may only have been rounded away.

        Returns:
            Whether any other size runs.
        """
        name = group[0]
        label = self._label(name)
        self.report(label)
        seen: list[Observation] = []
        sizes = other_sizes(self.sizes[name])
        for tried, size in enumerate(sizes[2:] if last_resort else sizes):
            if tried > 1 and not seen and not last_resort:
                break
            observation = self._at(group, size)
            if observation is None:
                continue
            whole = self._missing(observation) == 0
            if whole and not seen and not self._differs(observation):
                if last_resort:
                    continue
                self.result.irrelevant.add(name)
                return True
            seen.append(observation)
            if whole and len(seen) >= (3 if self._is_odd(label, seen) else 1):
                break
        if seen:
            self.result.moved[label] = seen
            self._groups[label] = group
            if len(group) > 1:
                named = tuple(self._label(other) for other in group if other in self.labels)
                self.result.tied[label] = named
        return bool(seen)

    def _at(self, group: Group, size: int) -> Observation | None:
        """A run with the first of a group at a size, and the others by the same factor."""
        changes = self._scaled(group, size)
        return self._observe(changes) if changes is not None else None

    def _scaled(self, group: Group, size: int) -> dict[str, int] | None:
        first = self.sizes[group[0]]
        if any(self.sizes[name] * size % first for name in group):
            return None
        return {name: self.sizes[name] * size // first for name in group}

    def _label(self, name: str) -> str:
        return self.labels.get(name, name)

    def _missing(self, seen: Observation) -> int:
        """How many of the first run's records a run did not have."""
        assert self.result.base is not None  # noqa: S101 - names are probed after the base
        return sum(key not in seen.shapes for key in self.result.base.shapes)

    def _is_odd(self, label: str, seen: list[Observation]) -> bool:
        """Whether some size moved, but not as a power of the factor."""
        base = self.result.base
        assert base is not None  # noqa: S101 - names are probed after the base
        factor = seen[0].sizes[label] / base.sizes[label]
        powers = {factor**exponent for exponent in range(-3, 5)}
        pairs = _pairs(base, seen[0])
        return any(
            a and b / a not in powers for old, new in pairs for a, b in zip(old, new, strict=True)
        )

    def _differs(self, seen: Observation) -> bool:
        assert self.result.base is not None  # noqa: S101 - names are probed after the base
        return any(old != new for old, new in _pairs(self.result.base, seen))

    def _observe(self, changes: Mapping[str, int]) -> Observation | None:
        try:
            model = self._run(changes)
        except Exception:  # noqa: BLE001 - a size that the model refuses is no evidence
            return None
        names, _ = module_names(model)
        tables = assemble(self.recorder.events, self.recorder.storages.blocks, names, "")
        sizes = {**self.sizes, **changes}
        return Observation(
            {self._label(name): size for name, size in sizes.items()},
            {
                key: record.shape
                for key, record in keyed(tables.scopes, tables.sites, tables.tensors)
            },
            parameter_shapes(model),
            attributes(model),
        )

    def _run(
        self,
        changes: Mapping[str, int],
        watch: Callable[[], contextlib.AbstractContextManager[Wanted]] | None = None,
    ) -> nn.Module:
        """Build and run; events are recorded, or, with `watch`, the functions entered noted."""
        subject = self.subject
        changes = {**_tied(subject, changes), **changes}
        integers = {name: changes.get(name, size) for name, size in subject.integers.items()}
        axes = {**subject.dims, **subject.loose}
        dims = {name: changes.get(name, size) for name, size in axes.items()}
        eager = torch.compiler.set_stance("force_eager")  # compiled code shows nothing
        with eager, self.weightless(), same_random_state(), torch.no_grad():
            model = subject.build(integers)
            given = subject.arguments(dims, integers)
            if watch is not None:
                with watch() as self._watched:
                    subject.run(model, given)
            else:
                self.recorder = Recorder(module_names(model)[1], operators=False)
                activate(self.recorder)
                try:
                    subject.run(model, given)
                finally:
                    activate(None)
                    self.recorder.close()
        return model


def _tied(subject: Subject, changes: Mapping[str, int]) -> dict[str, int]:
    tied: dict[str, int] = {}
    for name, size in changes.items():
        for other in subject.tied.get(name, ()):
            tied[other] = subject.integers[other] * size // subject.integers[name]
    return tied


def _pairs(base: Observation, seen: Observation) -> Iterator[tuple[Shape, Shape]]:
    """Shapes of the same record or parameter in two runs, where the rank is the same."""
    both = [(shape, seen.shapes.get(key)) for key, shape in base.shapes.items()]
    both += [(shape, seen.parameters.get(path)) for path, shape in base.parameters.items()]
    for old, new in both:
        if new is not None and len(new) == len(old):
            yield old, new
