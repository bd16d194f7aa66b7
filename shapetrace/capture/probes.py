"""Run a model again without weights, one size changed at a time, and see what moves.

A probe's records are found again by where they were made: the path of the call, the place
in the source, and which time round. So a probe in which a loop ran more often, or a branch
went the other way, still tells about all that it has in common with the first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from shapetrace.capture.assemble import assemble, module_names
from shapetrace.capture.discover import Wanted, entered, joined, own_files
from shapetrace.capture.recorder import Recorder
from shapetrace.capture.subject import Subject
from shapetrace.capture.swap import swap
from shapetrace.capture.taps import activate
from shapetrace.trace.naming import Observation, Probing, keyed
from shapetrace.trace.records import Shape

Weightless = Callable[[], contextlib.AbstractContextManager[Any]]

_CLUES_OF_NO_SHAPE = ("_id", "token", "layers", "layer_", "n_layer", "depth", "seed", "version")
"""Integers whose names hold these seldom size a tensor: they are probed together first."""


def probe(
    subject: Subject, report: Callable[[str], None] = lambda _: None
) -> tuple[Probing, Wanted]:
    """Run a subject weightless at its own sizes, then with each size changed.

    Args:
        subject: What to run.
        report: Called with the name of each size before it is probed.

    Returns:
        What was seen (`base` is None when no weightless run succeeded), and the functions
        that the run enters, for the recording of the real one.
    """
    prober = _Prober(subject, report)
    return prober.probe(), prober.wanted


def fake() -> contextlib.AbstractContextManager[Any]:
    """Tensors without memory that keep their device, so the same kernels are chosen."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def meta() -> contextlib.AbstractContextManager[Any]:
    """Tensors on the meta device."""
    return torch.device("meta")


class _Prober:
    def __init__(self, subject: Subject, report: Callable[[str], None]) -> None:
        self.subject = subject
        self.report = report
        self.recorder = Recorder({}, operators=False)
        self.result = Probing(None, inputs=dict(subject.guessed))
        self.wanted: Wanted = {}
        self._watched: Wanted = {}
        self.sizes = {**subject.integers, **subject.dims}

    def probe(self) -> Probing:
        weightless = self._entered()
        if weightless is None:
            return self.result
        swapped = swap(self.wanted)
        try:
            self.result.base = self._observe(weightless, {})
            if self.result.base is not None:
                self._probe_names(weightless)
        finally:
            swapped.undo()
        return self.result

    def _entered(self) -> Weightless | None:
        """The first way to run weightless that works, and the functions that the run enters."""
        problems = []
        for weightless in (meta, fake):
            try:
                model = self._run(weightless, {}, watch=entered)
            except Exception as error:  # noqa: BLE001 - any failure of the model rules this way out
                line = str(error).partition("\n")[0]
                problems.append(f"{weightless.__name__}: {type(error).__name__}: {line}")
            else:
                self.wanted = joined(self._watched, own_files(model))
                return weightless
        self.result.notes.append("dimensions were not probed (" + "; ".join(problems) + ")")
        return None

    def _probe_names(self, weightless: Weightless) -> None:
        names = [*self.subject.dims, *(self.subject.integers if self.subject.rebuilt else ())]
        quiet = [name for name in names if _seems_shapeless(name)]
        if len(quiet) > 1 and self._moves_nothing(weightless, quiet):
            self.result.irrelevant.update(quiet)
        for name in names:
            if name not in self.result.irrelevant and self.sizes[name]:  # no factor moves a 0
                self._probe_name(weightless, name)
        self._probe_jointly(weightless)

    def _probe_jointly(self, weightless: Weightless) -> None:
        """One run with every size that matters changed: what the names must foretell."""
        firsts = {name: seen[0].sizes[name] for name, seen in self.result.moved.items()}
        if len(firsts) > 1:
            self.result.joint = self._observe(weightless, firsts)

    def _moves_nothing(self, weightless: Weightless, names: list[str]) -> bool:
        seen = self._observe(weightless, {name: 2 * self.sizes[name] for name in names})
        return seen is not None and not self._differs(seen)

    def _probe_name(self, weightless: Weightless, name: str) -> None:
        """Double it; where that fails or takes another way, treble it, and so on.

        A size that moved something, but not as a power of the factor, is probed at more
        points; so is one at which part of the first run's records did not appear.
        """
        self.report(name)
        seen: list[Observation] = []
        for size in _other_sizes(self.sizes[name]):
            observation = self._observe(weightless, {name: size})
            if observation is None:
                continue
            whole = self._missing(observation) == 0
            if whole and not seen and not self._differs(observation):
                self.result.irrelevant.add(name)
                return
            seen.append(observation)
            if whole and len(seen) >= (3 if self._is_odd(name, seen) else 1):
                break
        if seen:
            self.result.moved[name] = seen
        else:
            self.result.notes.append(f"`{name}` could not be probed: no other size of it runs")

    def _missing(self, seen: Observation) -> int:
        """How many of the first run's records a run did not have."""
        assert self.result.base is not None  # noqa: S101 - names are probed after the base
        return sum(key not in seen.shapes for key in self.result.base.shapes)

    def _is_odd(self, name: str, seen: list[Observation]) -> bool:
        """Whether some size moved, but not as a power of the factor."""
        base = self.result.base
        assert base is not None  # noqa: S101 - names are probed after the base
        factor = seen[0].sizes[name] / self.sizes[name]
        powers = {factor**exponent for exponent in range(-3, 5)}
        pairs = _pairs(base, seen[0])
        return any(
            a and b / a not in powers for old, new in pairs for a, b in zip(old, new, strict=True)
        )

    def _differs(self, seen: Observation) -> bool:
        assert self.result.base is not None  # noqa: S101 - names are probed after the base
        return any(old != new for old, new in _pairs(self.result.base, seen))

    def _observe(self, weightless: Weightless, changes: Mapping[str, int]) -> Observation | None:
        try:
            model = self._run(weightless, changes)
        except Exception:  # noqa: BLE001 - a size that the model refuses is no evidence
            return None
        names, _ = module_names(model)
        tables = assemble(self.recorder.events, self.recorder.storages.blocks, names, "")
        return Observation(
            {**self.sizes, **changes},
            {
                key: record.shape
                for key, record in keyed(tables.scopes, tables.sites, tables.tensors)
            },
            _parameter_shapes(model),
            _attributes(model),
        )

    def _run(
        self,
        weightless: Weightless,
        changes: Mapping[str, int],
        watch: Callable[[], contextlib.AbstractContextManager[Wanted]] | None = None,
    ) -> nn.Module:
        """Build and run; events are recorded, or, with `watch`, the functions entered noted."""
        subject = self.subject
        changes = {**_tied(subject, changes), **changes}
        integers = {name: changes.get(name, size) for name, size in subject.integers.items()}
        dims = {name: changes.get(name, size) for name, size in subject.dims.items()}
        with weightless(), _same_random_state(), torch.no_grad():
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


def _other_sizes(size: int) -> tuple[int, ...]:
    """Sizes to try: doubled first, then others for what doubling can't do or can't tell."""
    return (2 * size, 3 * size, size + 1, 4 * size, max(size // 2, 1)) if size > 0 else (1, 2, 3)


def _seems_shapeless(name: str) -> bool:
    return any(clue in name.lower() for clue in _CLUES_OF_NO_SHAPE)


def _pairs(base: Observation, seen: Observation) -> Iterator[tuple[Shape, Shape]]:
    """Shapes of the same record or parameter in two runs, where the rank is the same."""
    both = [(shape, seen.shapes.get(key)) for key, shape in base.shapes.items()]
    both += [(shape, seen.parameters.get(path)) for path, shape in base.parameters.items()]
    for old, new in both:
        if new is not None and len(new) == len(old):
            yield old, new


def _parameter_shapes(model: nn.Module) -> dict[str, Shape]:
    named = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    return {name: tuple(tensor.shape) for name, tensor in named}


def _attributes(model: nn.Module) -> dict[str, dict[str, int]]:
    """Integers that the user's modules hold; torch's own (`in_features`) name nothing."""
    return {
        path: {
            name: value
            for name, value in vars(module).items()
            if type(value) is int and value > 1 and not name.startswith("_")
        }
        for path, module in model.named_modules()
        if not type(module).__module__.startswith("torch.nn")
    }


@contextlib.contextmanager
def _same_random_state() -> Iterator[None]:
    """Leave the random generators as they were."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
