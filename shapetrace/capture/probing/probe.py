"""Run a model again without weights, one size changed at a time, and see what moves.

A probe's records are found again by where they were made: the path of the call, the place
in the source, and which time round. So a probe in which a loop ran more often, or a branch
went the other way, still tells about all that it has in common with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from shapetrace.capture.probing.ambiguity import refuted, unsettled
from shapetrace.capture.probing.choose_sizes import (
    Group,
    deciding_sizes,
    other_sizes,
    seems_shapeless,
    sizes_alone,
    tied_groups,
)
from shapetrace.capture.probing.fewer_layers import Shallow, shallow
from shapetrace.capture.probing.probe_runs import ProbeRuns
from shapetrace.capture.probing.trial_sizes import far_trials, first_trials, halves, second_trials
from shapetrace.capture.recorder.swap import swap
from shapetrace.capture.source.discover import Wanted
from shapetrace.capture.target.subject import Subject
from shapetrace.naming.name_trace import Observation, Probing
from shapetrace.records.trace import Shape


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

    Raises:
        ProbingInterrupt: When Ctrl-C is pressed; what was seen so far is in it.
    """
    prober = _Prober(subject, report)
    try:
        return prober.probe(), prober.runs.wanted
    except KeyboardInterrupt as error:
        prober.result.notes.append("naming was interrupted")
        raise ProbingInterrupt(prober.result, prober.runs.wanted) from error


class ProbingInterrupt(KeyboardInterrupt):
    """Ctrl-C while probing.

    Attributes:
        probing: What was seen until then.
        wanted: The functions that the run enters; empty when that was not known yet.
    """

    def __init__(self, probing: Probing, wanted: Wanted) -> None:
        super().__init__()
        self.probing = probing
        self.wanted = wanted


class _Prober:
    def __init__(self, subject: Subject, report: Callable[[str], None]) -> None:
        self.subject = subject
        self.report = report
        self.runs = ProbeRuns(subject)
        self.sizes = self.runs.sizes
        self._begin(None, None)

    def _begin(self, base: Observation | None, shallow: Shallow | None) -> None:
        """Forget all that was seen but the first run."""
        self._shallow = shallow
        self._groups: dict[str, Group] = {}
        self._whole: list[Observation] = []
        self.result = Probing(
            base,
            inputs=dict(self.subject.guessed),
            given=dict(self.subject.given),
            unnamed=dict(self.subject.loose),
            equals={**shallow.records} if shallow is not None else {},
            equal_parameters={**shallow.parameters} if shallow is not None else {},
            notes=[*self.runs.notes],
        )

    def probe(self) -> Probing:
        entered = self.runs.enter()
        self._begin(None, None)
        if not entered:
            return self.result
        swapped = swap(self.runs.wanted)
        try:
            whole = self.runs.observe({})
            if whole is not None:
                self._probe_all(whole)
        finally:
            swapped.undo()
        return self.result

    def _probe_all(self, whole: Observation) -> None:
        """Probe with few layers where that can be; with all, should they not be equal after all."""
        few = shallow(self.runs, whole) if self.subject.rebuilt else None
        self._begin(few.base if few is not None else whole, few)
        if not self._probe_names():
            self.runs.fewer.clear()
            self._begin(whole, None)
            self._probe_names()

    def _probe_names(self) -> bool:
        """Probe every name; whether layers that stand for others turned out to be equal."""
        self.result.irrelevant.update(self.runs.fewer)
        names = [*self.subject.dims, *(self.subject.integers if self.subject.rebuilt else ())]
        names = [name for name in names if name not in self.runs.fewer]
        quiet = [name for name in names if seems_shapeless(name)]
        if len(quiet) > 1 and self._moves_nothing(quiet):
            self.result.irrelevant.update(quiet)
        loud = [n for n in dict.fromkeys(names) if n not in self.result.irrelevant]
        # No factor moves a 0.
        stuck = [name for name in loud if self.sizes[name] and not self._probe_group((name,))]
        for name in self._untied(stuck):
            if self._probe_group((name,), last_resort=True):
                continue
            note = f"`{self.runs.label(name)}` could not be probed: no other size of it runs"
            self.result.notes.append(note)
        self._settle()
        self._try_elsewhere()
        return self._shallow is None or self._stands(self._shallow)

    def _untied(self, stuck: Sequence[str]) -> list[str]:
        """Probe together what does not run alone; what is left."""
        left = list(stuck)
        dims = {name: self.subject.guessed.get(name, False) for name in self.subject.dims}
        for group in tied_groups(stuck, [*self.subject.loose], self.sizes, dims):
            free = {*left, *self.subject.loose}
            if free.issuperset(group) and self._probe_group(group):
                left = [name for name in left if name not in group]
                self._probe_apart(group)
        return left

    def _probe_apart(self, group: Group) -> None:
        """Axes of inputs that run only together, each alone until the model refuses.

        Up to there the axes are told apart: those of an image that has to be square.
        """
        inputs = [name for name in group if name in self.subject.dims]
        if len(inputs) > 1:
            label = self.runs.label(group[0])
            self.result.apart[label] = {
                name: [
                    seen
                    for size in sizes_alone(self.sizes[name])
                    if (seen := self.runs.observe({name: size}, partly=True)) is not None
                ]
                for name in inputs
            }

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

    def _try_elsewhere(self) -> None:
        """Runs with many sizes changed: what the names must foretell, and others where not."""
        leading = {group[0] for group in self._groups.values()}
        alone = {n for n in self.sizes if n in self.result.irrelevant and not seems_shapeless(n)}
        dims = set(self.subject.dims)
        tried = (leading | alone) - self._structural()
        sizes = {n: size for n, size in self.sizes.items() if n in tried and size}
        if not self.runs.may_grow():
            return
        first, *others = first_trials(sizes, dims)
        self._whole = self._tried(first, dims, whole=True)
        self.result.joint += self._whole
        for changes in others:
            self.result.joint += self._tried(changes, dims)
        for changes in far_trials({n: size for n, size in sizes.items() if n not in dims}):
            self.result.joint += self._tried(changes, dims, split=False)
        if refuted(self.result):
            for changes in second_trials(sizes, dims):
                self.result.holdouts += self._tried(changes, dims)

    def _structural(self) -> set[str]:
        """Sizes of which another makes another model: other parameters, not larger ones.

        A stack of another depth has another last layer; that a name of this one's last layer
        fails there says nothing of the name.
        """
        base = self.result.base
        assert base is not None  # noqa: S101 - names are probed after the base
        return {
            group[0]
            for label, group in self._groups.items()
            if any(
                run.parameters.keys() != base.parameters.keys() for run in self.result.moved[label]
            )
        }

    def _stands(self, few: Shallow) -> bool:
        """Whether layers stood for others in runs of all layers that moved every size."""
        base = few.base.sizes
        moved = {n for run in self._whole for n, size in run.sizes.items() if size != base[n]}
        return moved.issuperset(self.result.moved) and all(map(few.holds, self._whole))

    def _tried(
        self,
        changes: Mapping[str, int],
        dims: Collection[str],
        *,
        whole: bool = False,
        split: bool = True,
    ) -> list[Observation]:
        """A run with sizes changed; where it fails, two that change less."""
        scaled: dict[str, int] = {}
        for name, size in changes.items():
            group = self._groups.get(self.runs.label(name), (name,))
            scaled.update(self._scaled(group, size) or {})
        if all(size == self.sizes[name] for name, size in scaled.items()):
            return []
        seen = self.runs.observe(scaled, whole=whole)
        if seen is not None:
            return [seen]
        if len(changes) == 1 or not split:
            return []
        parts = halves(changes, dims)
        return [run for part in parts for run in self._tried(part, dims, whole=whole)]

    def _moves_nothing(self, names: Sequence[str]) -> bool:
        seen = self.runs.observe({name: 2 * self.sizes[name] for name in names})
        return seen is not None and not self._differs(seen)

    def _probe_group(self, group: Group, *, last_resort: bool = False) -> bool:
        """Double it, or treble it; as a last resort, try sizes that divide otherwise.

        A size that moved something, but not as a power of the factor, is probed at more
        points; so is one at which part of the first run's records did not appear.

        Args:
            group: A name, or several that are changed by one factor.
            last_resort: Whether neither doubling nor trebling runs, alone or with others.
                A size that then moves nothing may only have been rounded away, so that
                one is not enough.

        Returns:
            Whether any other size runs.
        """
        name = group[0]
        label = self.runs.label(name)
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
            needed = 3 if last_resort or self._is_odd(label, seen) else 1
            if whole and len(seen) >= needed:
                break
        if seen:
            self.result.moved[label] = seen
            self._groups[label] = group
            if len(group) > 1:
                self.result.tied[label] = tuple(self.runs.label(other) for other in group[1:])
        return bool(seen)

    def _at(self, group: Group, size: int) -> Observation | None:
        """A run with the first of a group at a size, and the others by the same factor."""
        changes = self._scaled(group, size)
        return self.runs.observe(changes) if changes is not None else None

    def _scaled(self, group: Group, size: int) -> dict[str, int] | None:
        first = self.sizes[group[0]]
        if any(self.sizes[name] * size % first for name in group):
            return None
        return {name: self.sizes[name] * size // first for name in group}

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


def _pairs(base: Observation, seen: Observation) -> Iterator[tuple[Shape, Shape]]:
    """Shapes of the same record or parameter in two runs, where the rank is the same."""
    both = [(shape, seen.shapes.get(key)) for key, shape in base.shapes.items()]
    both += [(shape, seen.parameters.get(path)) for path, shape in base.parameters.items()]
    for old, new in both:
        if new is not None and len(new) == len(old):
            yield old, new
