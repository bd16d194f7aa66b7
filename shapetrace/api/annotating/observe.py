"""A model's runs at several sizes, with names, for what annotations are inferred from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from torch import nn

from shapetrace.annotation.inference.carry import carried
from shapetrace.api.preparing.prepare import Prepared
from shapetrace.api.preparing.probe_names import probed
from shapetrace.api.preparing.resized_inputs import resizings
from shapetrace.api.preparing.source_files import of_package
from shapetrace.capture.record_annotated import Running, entered_by, watched
from shapetrace.capture.source.live_functions import searched_once
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.instances import name_axes, subject_of
from shapetrace.naming.name_trace import named
from shapetrace.records.structure import Structures
from shapetrace.records.trace import Trace


@dataclass(slots=True)
class Runs:
    """A model's runs, as far as annotations need them."""

    traces: list[Trace]
    calls: list[CallInputs]
    structures: Structures
    sizes: list[dict[str, int]] = field(default_factory=list)


def of_target(prepared: Prepared) -> Running:
    """A model that a target makes, with its inputs, at other sizes too where they can be made."""
    target, inputs, others = prepared.target, prepared.inputs, prepared.at_other_sizes()
    if inputs.specs is None:
        calls, sizes = _of_values(inputs, (made for _, made in others))
    else:
        given = prepared.sizes()
        resized = [({**given, **change}, made) for change, made in others]
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
) -> Runs:
    """Run a model on its inputs, and on the same inputs at other sizes; name every axis.

    Args:
        running: The model and its calls.
        origin: The file that it is from; kinds of values are noted in its package alone.
        aliases: Other names for dimensions.
        progress: Told what is going on.

    Raises:
        ShapetraceError: If the model does not run on its inputs.
    """
    progress(f"running {running.name}")
    with searched_once():
        return _all(running, origin, aliases, progress)


def _all(
    running: Running,
    origin: str,
    aliases: Mapping[str, str],
    progress: Callable[[str], None],
) -> Runs:
    model, calls, name = running.model, running.calls, running.name
    wanted = entered_by(model, calls[0])
    own = of_package(wanted, origin)
    base, structures = watched(model, calls[0], wanted, own, name=name, config=running.config)
    probing, _ = probed(running.subject, progress)
    base = named(_undeclared(base), probing, aliases)
    runs = Runs([base], [calls[0]], structures, [running.sizes[0]])
    for call, given in zip(calls[1:], running.sizes[1:], strict=True):
        try:
            other, more = watched(model, call, wanted, own, name=name, config={})
        except Exception:  # noqa: BLE001, S112 - a size that the model refuses tells nothing
            continue
        renamed = {aliases.get(axis, axis): size for axis, size in given.items()}
        runs.traces.append(carried(base, other, renamed))
        runs.calls.append(call)
        runs.sizes.append(given)
        runs.structures = _joined(runs.structures, more)
    return runs


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
