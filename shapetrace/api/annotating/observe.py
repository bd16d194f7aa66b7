"""A model's runs at several sizes, with names, for what annotations are inferred from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from shapetrace.annotation.inference.carry import carried
from shapetrace.api.tracing.resized_inputs import other_sizes
from shapetrace.errors import ShapetraceError
from shapetrace.installed import is_installed
from shapetrace.naming.name_trace import named
from shapetrace.records.structure import Structures
from shapetrace.records.trace import Trace

if TYPE_CHECKING:
    from torch import nn

    from shapetrace.capture.record_annotated import Running
    from shapetrace.capture.target.inputs import CallInputs
    from shapetrace.capture.target.target import Target


Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


@dataclass(slots=True)
class Runs:
    """A model's runs, as far as annotations need them."""

    traces: list[Trace]
    calls: list[Call]
    structures: Structures
    sizes: list[dict[str, int]] = field(default_factory=list)


def of_target(
    target: Target,
    model: nn.Module,
    inputs: CallInputs,
    others: Iterable[CallInputs] = (),
) -> Running:
    """A model that a target makes.

    Args:
        target: What makes it.
        model: The model.
        inputs: Its inputs; from specs they are made at other sizes too.
        others: Such inputs at other sizes, where they were not made from specs.
    """
    from shapetrace.capture.record_annotated import Running  # noqa: PLC0415 - needs torch

    subject = target.subject(inputs)
    if inputs.specs is None:
        calls, sizes = _of_values(inputs, others)
    else:
        calls, sizes = _calls(inputs, frozenset(target.integers()))
    return Running(model, subject, calls, sizes, target.name, target.config())


def of_instance(model: nn.Module, inputs: CallInputs, dims: Mapping[str, int] | None) -> Running:
    """A model that exists, and inputs that came with their values."""
    from shapetrace.capture.record_annotated import Running  # noqa: PLC0415
    from shapetrace.capture.target.instances import subject_of  # noqa: PLC0415 - these need torch

    subject = subject_of(model, inputs, dims)
    sizes = [dict(subject.dims)]
    calls = [(inputs.args, inputs.kwargs)]
    for other in other_sizes(subject.dims):
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
    from shapetrace.capture.source.live_functions import searched_once  # noqa: PLC0415 - needs torch

    progress(f"running {running.name}")
    with searched_once():
        return _all(running, origin, aliases, progress)


def _all(
    running: Running,
    origin: str,
    aliases: Mapping[str, str],
    progress: Callable[[str], None],
) -> Runs:
    from shapetrace.api.tracing.probe_names import probed  # noqa: PLC0415 - these need torch
    from shapetrace.capture.record_annotated import entered_by, watched  # noqa: PLC0415

    model, calls, name = running.model, running.calls, running.name
    wanted = entered_by(model, calls[0])
    own = _own_files(wanted, origin)
    base, structures = watched(model, calls[0], wanted, own, name=name, config=running.config)
    probing, _ = probed(running.subject, lambda size: progress(f"naming: {size} at another size"))
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


def _calls(inputs: CallInputs, fixed: frozenset[str]) -> tuple[list[Call], list[dict[str, int]]]:
    """The call as given, and at other sizes; names that the model is built from stay."""
    from shapetrace.capture.target.inputs import from_specs  # noqa: PLC0415 - needs torch

    calls: list[Call] = [(inputs.args, inputs.kwargs)]
    assert inputs.specs is not None  # noqa: S101 - the caller's to see
    sizes = [dict(inputs.specs.sizes)]
    free = {name: size for name, size in sizes[0].items() if name not in fixed}
    for other in other_sizes(free):
        made = from_specs(inputs.specs.resized(other))
        calls.append((made.args, made.kwargs))
        sizes.append({**sizes[0], **other})
    return calls, sizes


def _of_values(
    inputs: CallInputs, others: Iterable[CallInputs]
) -> tuple[list[Call], list[dict[str, int]]]:
    """The call as given, and others; their axes have the names that are guessed for the first."""
    from shapetrace.capture.target.instances import name_axes  # noqa: PLC0415 - needs torch

    axes, known = name_axes(inputs, None)
    first = [(place, axes.get(id(tensor), ())) for place, tensor in inputs.tensors()]
    calls: list[Call] = [(inputs.args, inputs.kwargs)]
    sizes = [known]
    for other in others:
        shapes = {place: tuple(tensor.shape) for place, tensor in other.tensors()}
        if [place for place, _ in first] != [*shapes]:
            continue  # another structure
        calls.append((other.args, other.kwargs))
        pairs = [zip(names, shapes[place], strict=False) for place, names in first]
        sizes.append({name: size for pair in pairs for name, size in pair if name})
    return calls, sizes


def _joined(known: Structures, more: Structures) -> Structures:
    return {
        place: tuple(dict.fromkeys((*known.get(place, ()), *more.get(place, ()))))
        for place in dict.fromkeys((*known, *more))
    }


def origin_file(text: str) -> str:
    """The source file that a target names.

    Raises:
        ShapetraceError: It has none.
    """
    from shapetrace.capture.target.loading import load_module  # noqa: PLC0415

    return _source_file(load_module(text.rpartition(":")[0]), text)


def instance_file(found: object) -> str:
    """The source file of a model's class, or of a function.

    Raises:
        ShapetraceError: It has none, or it is the running script itself.
    """
    kind: Any = found if isinstance(found, FunctionType) else type(found)
    name = str(kind.__qualname__)
    if kind.__module__ == "__main__":
        raise ShapetraceError(
            f"{name} is defined in the running script, which can't be run again to prove "
            "annotations; import it from a module, or use `shapetrace annotate`"
        )
    return _source_file(sys.modules.get(kind.__module__), name)


def _source_file(module: object, name: str) -> str:
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        raise ShapetraceError(
            f"{name} has no source file: generated or compiled code can't be annotated"
        )
    return str(file)


def own_sources(traces: Sequence[Trace], origin: str) -> tuple[Path, list[str]]:
    """The folder of the target's package or file, and the files in it that ran."""
    package, _ = _folders(origin)
    found = dict.fromkeys(
        site.file for trace in traces for site in trace.sites if not site.internal
    )
    own = _own_files(found, origin)
    if not found and not any(trace.tensors for trace in traces):
        raise ShapetraceError("no tensor was seen: the target runs no Python code with tensors")
    return package, own


def _own_files(files: Iterable[str], origin: str) -> list[str]:
    """Those of some files that belong to the package, or the folder, of a file."""
    package, inside = _folders(origin)
    own = [file for file in files if Path(file).resolve().is_relative_to(inside)]
    return [file for file in own if inside != package or not _installed(Path(file), package)]


def _folders(origin: str) -> tuple[Path, Path]:
    """The folder that a file's package lies in, and the package; else the file's folder twice."""
    first = Path(origin).resolve()
    package = first.parent
    while (package / "__init__.py").exists():
        package = package.parent
    top = first.relative_to(package).parts[0]
    return package, package / top if (package / top).is_dir() else package


def _installed(file: Path, package: Path) -> bool:
    return is_installed(str(file.resolve().relative_to(package)))
