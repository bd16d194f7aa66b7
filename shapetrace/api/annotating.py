"""Annotate a model's source: run it at several sizes, infer, rewrite, prove.

Nothing is written here; the caller gets the new source of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from shapetrace.annotate.amend import Amendments, Fault, function_lines
from shapetrace.annotate.infer import Inferred, Wishes, infer
from shapetrace.annotate.plan import LeftOut, Rewritten
from shapetrace.annotate.rewrite import rewrite
from shapetrace.annotate.sizes import carried
from shapetrace.capture.proving import Call
from shapetrace.dims.specs import parse_specs
from shapetrace.errors import ShapetraceError
from shapetrace.trace.naming import named
from shapetrace.trace.records import Trace
from shapetrace.trace.structure import Structures

if TYPE_CHECKING:
    from torch import nn

    from shapetrace.capture.inputs import CallInputs
    from shapetrace.capture.job import Verdict
    from shapetrace.capture.proving import Proof
    from shapetrace.capture.target import Target
    from shapetrace.dims.specs import InputSpecs

_ROUNDS = 6
"""Weaken once, drop once, and what that uncovers."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """What annotating a model came to.

    Attributes:
        files: Each file's old and new source.
        left_out: What has no annotation, or a weaker one, and why.
        tensors: How many parameters and returns held a tensor.
        checks: How many values the proof checked.
        runs: Sizes of the inputs' named axes in each run.
        root: The folder that the files belong to.
    """

    files: tuple[Rewritten, ...]
    left_out: tuple[LeftOut, ...]
    tensors: int
    checks: int
    runs: tuple[tuple[tuple[str, int], ...], ...]
    root: Path


@dataclass(slots=True)
class Runs:
    """A model's runs, as far as annotations need them."""

    traces: list[Trace]
    calls: list[Call]
    structures: Structures
    sizes: list[dict[str, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Request:
    """What to annotate, in the words of the command line.

    Attributes:
        target: ``package.module:Class``, ``file.py:factory``.
        specs: Input specs, one per argument: ``x:float32[B=2,n=16]``.
        inputs: A file or function with inputs, in place of specs.
        arguments: ``key=value`` arguments of the constructor.
        hf_config: Fields of a Hugging Face configuration.
        aliases: ``name=other`` pairs: other names for dimensions.
    """

    target: str
    specs: Sequence[str] = ()
    inputs: str | None = None
    arguments: Sequence[str] = ()
    hf_config: Sequence[str] = ()
    aliases: Sequence[str] = ()


def annotate(
    request: Request,
    wishes: Wishes | None = None,
    *,
    guard: Callable[[str], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Annotated:
    """Annotate the source of what a target names.

    Args:
        request: What to run; specs can be made at other sizes, inputs from a file can't.
        wishes: What to annotate and how.
        guard: Called with each file that would change, before the proof; it may refuse.
        progress: Told what is going on.

    Raises:
        ShapetraceError: If the target can't be made or run, its source can't be read, no
            tensor is seen, or there is nothing to annotate.
    """
    read = _specs(request)
    aliases = dict(_alias(text) for text in request.aliases)
    from shapetrace.capture.inputs import check_signature, from_file, from_specs  # noqa: PLC0415
    from shapetrace.capture.proving import Proof  # noqa: PLC0415 - these need torch
    from shapetrace.capture.target import resolve  # noqa: PLC0415

    progress(f"making {request.target}")
    target = resolve(request.target, request.arguments, request.hf_config)
    inputs = from_specs(read) if request.inputs is None else from_file(request.inputs)
    model = target.build().eval()
    check_signature(model, inputs)
    origin = _origin_file(request.target)
    runs = _run_all(target, model, inputs, aliases, progress)
    text = (request.target, tuple(request.arguments), tuple(request.hf_config))
    place = _files(runs.traces, origin)
    proof = Proof(model, runs.calls, text)
    return finish(runs, proof, place, wishes or Wishes(), guard=guard, progress=progress)


def _specs(request: Request) -> InputSpecs:
    if request.specs and request.inputs is not None:
        raise ShapetraceError("--input and --inputs are both given; give one of them")
    if not request.specs and request.inputs is None:
        raise ShapetraceError(
            "no input is given; give --input, such as --input x:float32[B=2,n=16]"
        )
    return parse_specs(request.specs)


def _alias(text: str) -> tuple[str, str]:
    name, equals, other = text.partition("=")
    if not equals or not name.isidentifier() or not other.isidentifier():
        raise ShapetraceError(f"--alias {text!r} is not of the form hidden_size=d_model")
    return name, other


def finish(
    runs: Runs,
    proof: Proof,
    place: tuple[Path, Iterable[str]],
    wishes: Wishes,
    *,
    guard: Callable[[str], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Annotated:
    """From runs to proven source.

    Raises:
        ShapetraceError: When nothing is to be annotated, or the new source does not run.
    """
    root, found = place
    sources = {file: _read(file) for file in found}
    inferred = infer(runs.traces, runs.structures, sources, wishes)
    if not inferred.tensors:
        raise ShapetraceError(
            "nothing to annotate: no function of "
            f"{root} was seen with a tensor{_only(wishes)}; see --only and the target"
        )
    for plan in inferred.files:
        guard(plan.file)
    progress("proving the annotations")
    files, told, checks = _proven(inferred, sources, proof, wishes)
    left_out = [*inferred.left_out, *told, *(one for file in files for one in file.left_out)]
    ran = tuple(tuple(sizes.items()) for sizes in runs.sizes)
    return Annotated(files, tuple(left_out), inferred.tensors, checks, ran, root)


def _only(wishes: Wishes) -> str:
    return f" under --only {' '.join(wishes.only)}" if wishes.only else ""


def _proven(
    inferred: Inferred, sources: Mapping[str, bytes], proof: Proof, wishes: Wishes
) -> tuple[tuple[Rewritten, ...], list[LeftOut], int]:
    """Rewrite and run until every annotation that is left holds."""
    plans, amendments = inferred.files, Amendments()
    for _ in range(_ROUNDS):
        files = tuple(rewrite(sources[plan.file], plan, replace=wishes.replace) for plan in plans)
        if not any(file.changed for file in files):
            return files, list(amendments.told.values()), 0
        verdict = _verdict(files, proof)
        if not verdict.failed:
            return files, list(amendments.told.values()), verdict.checks
        plans = amendments.amend(plans, _faults(verdict, sources))
    raise ShapetraceError(
        "the annotations could not be made to hold: the model behaves differently in each run"
    )


def _verdict(files: Sequence[Rewritten], proof: Proof) -> Verdict:
    changed = {file.file: file.new for file in files if file.changed}
    names: dict[tuple[str, int], set[str]] = {}
    variables: dict[tuple[str, int], set[str]] = {}
    for file in files:
        numbers = {line: number for number, line in enumerate(function_lines(file.old))}
        for one in file.written:
            place = (file.file, numbers[one.line])
            names.setdefault(place, set()).add(one.name)
            if one.kind == "local":
                variables.setdefault(place, set()).add(one.name)
    verdict = proof.of(changed, _frozen(names), _frozen(variables))
    if verdict.error:
        raise ShapetraceError(f"the annotated source does not run: {verdict.error}") from (
            RuntimeError(verdict.details)
        )
    if not verdict.checks:
        raise ShapetraceError(
            "the annotated source was not run when it was to be proven; is the model made by "
            "code in another process, or from a cache?"
        )
    return verdict


def _frozen(sets: Mapping[tuple[str, int], set[str]]) -> dict[tuple[str, int], frozenset[str]]:
    return {place: frozenset(names) for place, names in sets.items()}


def _faults(verdict: Verdict, sources: Mapping[str, bytes]) -> list[Fault]:
    lines = {file: function_lines(source) for file, source in sources.items()}
    return [
        Fault(failed.file, lines[failed.file][failed.function], failed.name, failed.reason)
        for failed in verdict.failed
    ]


def _run_all(
    target: Target,
    model: nn.Module,
    inputs: CallInputs,
    aliases: Mapping[str, str],
    progress: Callable[[str], None],
) -> Runs:
    from shapetrace.capture.probes import probe  # noqa: PLC0415 - needs torch
    from shapetrace.capture.watching import entered_by, watched  # noqa: PLC0415

    progress(f"running {target.name}")
    calls, sizes = _calls(inputs, frozenset(target.integers()))
    wanted = entered_by(model, calls[0])
    base, structures = watched(model, calls[0], wanted, target.name, target.config())
    progress("probing its sizes")
    probing, _ = probe(target.subject(inputs))
    base = named(base, probing, aliases)
    runs = Runs([base], [calls[0]], structures, [sizes[0]])
    for call, given in zip(calls[1:], sizes[1:], strict=True):
        try:
            other, more = watched(model, call, wanted, target.name, {})
        except Exception:  # noqa: BLE001, S112 - a size that the model refuses tells nothing
            continue
        renamed = {aliases.get(name, name): size for name, size in given.items()}
        runs.traces.append(carried(base, other, renamed))
        runs.calls.append(call)
        runs.sizes.append(given)
        runs.structures = _joined(runs.structures, more)
    return runs


def _calls(inputs: CallInputs, fixed: frozenset[str]) -> tuple[list[Call], list[dict[str, int]]]:
    """The call as given, and at other sizes: all grown together, then each alone.

    Names that the model is built from stay as they are.
    """
    from shapetrace.capture.inputs import from_specs  # noqa: PLC0415 - needs torch

    calls: list[Call] = [(inputs.args, inputs.kwargs)]
    sizes = [dict(inputs.specs.sizes) if inputs.specs is not None else {}]
    if inputs.specs is None or not sizes[0]:
        return calls, sizes
    free = {name: size for name, size in sizes[0].items() if name not in fixed}
    doubled = {name: 2 * size for name, size in free.items()}
    grown = _distinct(free)
    alone = [{name: 2 * size} for name, size in free.items()] if len(free) > 1 else []
    for other in (grown, doubled, *alone) if free else ():
        made = from_specs(inputs.specs.resized(other))
        calls.append((made.args, made.kwargs))
        sizes.append({**sizes[0], **other})
    return calls, sizes


def _distinct(sizes: Mapping[str, int]) -> dict[str, int]:
    """Each size a little larger, and no two alike: what is equal by chance shows."""
    found: dict[str, int] = {}
    for name, size in sizes.items():
        larger = size + 1
        while larger in found.values():
            larger += 1
        found[name] = larger
    return found


def _joined(known: Structures, more: Structures) -> Structures:
    return {
        place: tuple(dict.fromkeys((*known.get(place, ()), *more.get(place, ()))))
        for place in dict.fromkeys((*known, *more))
    }


def _origin_file(text: str) -> str:
    from shapetrace.capture.loading import load_module  # noqa: PLC0415

    file = getattr(load_module(text.rpartition(":")[0]), "__file__", None)
    if not file or not file.endswith(".py"):
        raise ShapetraceError(
            f"{text} has no source file: generated or compiled code can't be annotated"
        )
    return str(file)


def _files(traces: Sequence[Trace], origin: str) -> tuple[Path, list[str]]:
    """The folder of the target's package or file, and the files in it that ran."""
    first = Path(origin).resolve()
    package = first.parent
    while (package / "__init__.py").exists():
        package = package.parent
    top = first.relative_to(package).parts[0]
    inside = package / top if (package / top).is_dir() else package
    found = dict.fromkeys(
        site.file for trace in traces for site in trace.sites if not site.internal
    )
    own = [file for file in found if Path(file).resolve().is_relative_to(inside)]
    if not found and not any(trace.tensors for trace in traces):
        raise ShapetraceError("no tensor was seen: the target runs no Python code with tensors")
    nested = [file for file in own if inside != package or not _installed(Path(file), package)]
    return package, nested


def _installed(file: Path, package: Path) -> bool:
    below = file.resolve().relative_to(package).parts
    return any(part in ("site-packages", "dist-packages") for part in below)


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ShapetraceError(f"cannot read {file}: {error.strerror or error}") from error
