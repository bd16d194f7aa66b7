"""A model's runs at several sizes, with names, for what annotations are inferred from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from shapetrace.annotation.inference.carry import carried, completed
from shapetrace.annotation.inference.paths import paths_of
from shapetrace.api.annotating.variants import Variant, call_variants, model_variants
from shapetrace.api.preparing.prepare import Prepared
from shapetrace.api.preparing.probe_names import probed
from shapetrace.api.preparing.resized_inputs import resizings
from shapetrace.api.preparing.source_files import of_package
from shapetrace.capture.probing.resized_models import owned_sizes
from shapetrace.capture.proof.messages import ProofCase, TargetText
from shapetrace.capture.record_annotated import Running, code_run_by, entered_by, watched
from shapetrace.capture.source.live_functions import searched_once
from shapetrace.capture.target.inputs import CallInputs, from_specs
from shapetrace.capture.target.instances import name_axes, subject_of
from shapetrace.capture.target.target import resolve
from shapetrace.capture.values.code_run import CodeRun
from shapetrace.capture.values.members import set_training
from shapetrace.dims.specs import InputSpecs
from shapetrace.errors import ShapetraceError
from shapetrace.naming.name_trace import named
from shapetrace.records.structure import Structures
from shapetrace.records.trace import Trace


@dataclass(slots=True)
class Runs:
    """A model's runs, as far as annotations need them.

    Attributes:
        traces: What was recorded in each.
        cases: How to run them again.
        structures: What kind of value each place held.
        sizes: Of the inputs' named axes in each.
        code: What code of the model's own files ran.
        owned: For each run, the whole numbers that the model's modules hold.
    """

    traces: list[Trace] = field(default_factory=list)
    cases: list[ProofCase] = field(default_factory=list)
    structures: Structures = field(default_factory=dict)
    sizes: list[dict[str, int]] = field(default_factory=list)
    code: CodeRun = field(default_factory=CodeRun)
    owned: list[Mapping[str, Mapping[str, int]]] = field(default_factory=list)


def of_target(prepared: Prepared) -> Running:
    """A model that a target makes, with its inputs, at other sizes too where they can be made."""
    target, inputs, others = prepared.target, prepared.inputs, prepared.at_other_sizes()
    if inputs.specs is None:
        calls, sizes = _of_values(inputs, (made for _, made in others))
    else:
        given = prepared.sizes()
        resized = [({**given, **change}, made) for change, made in others]
        resized += [({**given, **change}, made) for change, made in _smaller(inputs.specs)]
        calls = [inputs, *(made for _, made in resized)]
        sizes = [given, *(known for known, _ in resized)]
    return Running(
        model=prepared.model,
        subject=prepared.subject(),
        calls=calls,
        sizes=sizes,
        name=target.name,
        config=target.config(),
    )


def _smaller(specs: InputSpecs) -> Iterator[tuple[dict[str, int], CallInputs]]:
    """The inputs as small as they may be, no two sizes alike; each axis without a name alone longer."""
    least = {name: 2 + number for number, name in enumerate(dict(specs.sizes))}
    if any(least[name] < size for name, size in specs.sizes):
        yield least, from_specs(specs.resized(least))
    for place, size in specs.loose().items():
        yield {}, from_specs(specs.resized({place: size + 3}))


def of_instance(model: nn.Module, inputs: CallInputs, dims: Mapping[str, int] | None) -> Running:
    """A model that exists, and inputs that came with their values."""
    subject = subject_of(model, inputs, dims)
    sizes = [dict(subject.dims)]
    calls = [inputs]
    for other in resizings(subject.dims):
        sizes.append({**sizes[0], **other})
        calls.append(subject.arguments(sizes[-1], {}))
    return Running(model, subject, calls, sizes, type(model).__qualname__)


def run_all(
    running: Running,
    origin: str,
    aliases: Mapping[str, str],
    progress: Callable[[str], None],
    prepared: Prepared | None = None,
) -> Runs:
    """Run a model on its inputs, at other sizes and in other ways; name every axis.

    Args:
        running: The model and its calls.
        origin: The file that it is from; kinds of values are noted in its package alone.
        aliases: Other names for dimensions.
        progress: Told what is going on.
        prepared: What the model came from, where it can be made in other ways.

    Raises:
        ShapetraceError: If the model does not run on its inputs.
    """
    progress(f"running {running.name}")
    with searched_once():
        observer = _Observer(running, origin, aliases, progress)
        observer.as_given(prepared)
        observer.in_other_ways(prepared)
    return observer.runs


class _Observer:
    """Runs a model in one way after the other, and keeps what each showed."""

    def __init__(
        self,
        running: Running,
        origin: str,
        aliases: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> None:
        self.running, self.origin, self.aliases, self.progress = running, origin, aliases, progress
        self.runs = Runs()

    def as_given(self, prepared: Prepared | None) -> None:
        """The calls of the running itself: as given, and at other sizes."""
        running = self.running
        target = None if prepared is None else _text(prepared, ())
        self._case(running, ProofCase(running.calls, target), running.config)

    def in_other_ways(self, prepared: Prepared | None) -> None:
        """What is optional left out, flags the other way, in training: what runs other code."""
        model, given = self.running.model, self.running.calls[0]
        values = {} if prepared is None else prepared.target.recipe.values()
        others = () if prepared is None or not prepared.target.rebuilds else model_variants(values)
        telling: set[str] = set()
        for variant in (*call_variants(model.forward, given), *others):
            # a number that once led to other code may be any number there
            again = not telling.isdisjoint(variant.values)
            if variant.always or again or self._is_open():
                fresh = self._variant(variant, prepared, always=variant.always or again)
                telling |= set(variant.values) if fresh else set()

    def _is_open(self) -> bool:
        """Whether a function that ran has ways to its return value, or bindings, that did not."""
        spans = self.runs.code.spans()
        ran = {(file, line) for file, line, _ in self.runs.structures}
        return any(
            (file, line) in ran and (paths.open or paths.unrun)
            for file, found in spans.items()
            for line, paths in paths_of(Path(file).read_bytes(), found).items()
        )

    def _variant(self, variant: Variant, prepared: Prepared | None, *, always: bool) -> bool:
        """Run a variant; whether it ran code that no other run did."""
        try:
            running, target = self._other(variant, prepared)
        except Exception:  # noqa: BLE001 - no such model, or no such call
            return False
        files = self._files(running)
        code = code_run_by(running.model, running.calls[0], files) if files else None
        if code is None:
            return False
        known = self.runs.code.spans()
        fresh = any(found - known.get(file, frozenset()) for file, found in code.spans().items())
        if fresh or always:
            case = ProofCase(running.calls, target, variant.training)
            like = None if fresh else self.runs.traces[0]
            with suppress(Exception):  # it ran without a recorder alone
                self._case(running, case, running.config, like=like)
        return fresh

    def _files(self, running: Running) -> list[str]:
        try:
            return of_package(entered_by(running.model, running.calls[0]), self.origin)
        except ShapetraceError:  # the model does not run so
            return []

    def _other(
        self, variant: Variant, prepared: Prepared | None
    ) -> tuple[Running, TargetText | None]:
        base, subject, model = self.running, self.running.subject, self.running.model
        target = None if prepared is None else _text(prepared, ())
        if variant.other_model and prepared is not None:
            target = _text(prepared, variant.flags)
            made = resolve(*target)
            model = made.build(seed=prepared.request.seed)
            set_training(model, mode=variant.training)
            subject = made.subject(prepared.inputs)
        calls = [variant.inputs(model.forward, call) for call in base.calls[:2]]

        def arguments(dims: Mapping[str, int], integers: Mapping[str, int]) -> CallInputs:
            return variant.inputs(model.forward, subject.arguments(dims, integers))

        def build(integers: Mapping[str, int]) -> nn.Module:
            return set_training(subject.build(integers), mode=variant.training)

        other = replace(subject, arguments=arguments, build=build)
        sizes = base.sizes[:2]
        return Running(
            model=model, subject=other, calls=calls, sizes=sizes, name=base.name, config=base.config
        ), target

    def _case(
        self,
        running: Running,
        case: ProofCase,
        config: Mapping[str, Any],
        *,
        like: Trace | None = None,
    ) -> None:
        """Run the calls of a model; the first names its axes, or has those of a run like it."""
        model, name = running.model, running.name
        wanted = entered_by(model, case.calls[0])
        own = of_package(wanted, self.origin)
        base, ran, owned = like, [], owned_sizes(model)
        for number, (call, given) in enumerate(zip(case.calls, running.sizes, strict=True)):
            code = CodeRun()
            try:
                trace, structures = watched(
                    model, call, wanted, own, name=name, config={} if number else config, code=code
                )
            except Exception:
                if number:
                    continue  # a size that the model refuses tells nothing
                raise
            renamed = {self.aliases.get(axis, axis): size for axis, size in given.items()}
            first = self.runs.traces[0] if self.runs.traces else None
            if base is None:
                probing, _ = probed(running.subject, self.progress)
                base = named(_undeclared(trace), probing, self.aliases)
                known = base
            else:
                known = carried(base, trace, renamed)
            if first is not None and first is not base:  # one name for one thing in all runs
                known = completed(carried(first, trace, renamed), known)
            trace = known
            ran.append(call)
            self.runs.traces.append(trace)
            self.runs.sizes.append(given)
            self.runs.owned.append(owned)
            self.runs.code.add(code)
            self.runs.structures = _joined(self.runs.structures, structures)
        self.runs.cases.append(replace(case, calls=tuple(ran)))


def _text(prepared: Prepared, flags: Sequence[str]) -> TargetText:
    request = prepared.request
    return request.target, (*request.arguments, *flags), tuple(request.hf_config)


def _undeclared(trace: Trace) -> Trace:
    """The trace without what annotations say: names come from what runs show."""
    bare = tuple(replace(record, declared=None) for record in trace.tensors)
    return replace(trace, tensors=bare)


def _of_values(
    inputs: CallInputs, others: Iterable[CallInputs]
) -> tuple[list[CallInputs], list[dict[str, int]]]:
    """The call as given, and others; their axes have the names that are guessed for the first."""
    axes, known = name_axes(inputs, None)
    first = [(place, axes.get(id(tensor), ())) for place, tensor in inputs.tensors()]
    calls = [inputs]
    sizes = [known]
    for other in others:
        shapes = {place: tuple(tensor.shape) for place, tensor in other.tensors()}
        if [place for place, _ in first] != [*shapes]:
            continue  # another structure
        calls.append(other)
        pairs = [zip(names, shapes[place], strict=False) for place, names in first]
        sizes.append({name: size for pair in pairs for name, size in pair if name})
    return calls, sizes


def _joined(known: Structures, more: Structures) -> Structures:
    return {
        place: tuple(dict.fromkeys((*known.get(place, ()), *more.get(place, ()))))
        for place in dict.fromkeys((*known, *more))
    }
