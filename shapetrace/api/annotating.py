"""Annotate a model's source: run it at several sizes, infer, rewrite, prove.

Nothing is written here; the caller gets the new source of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shapetrace.annotate.amend import Amendments, Fault, function_lines
from shapetrace.annotate.infer import Inferred, Wishes, infer
from shapetrace.annotate.plan import LeftOut, Rewritten
from shapetrace.annotate.rewrite import rewrite
from shapetrace.api.runs import Runs, origin_file, own_sources, run_all
from shapetrace.api.tracing import Request, read_aliases, read_inputs
from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from shapetrace.capture.job import Verdict
    from shapetrace.capture.proving import Proof

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
    if not request.inputs and request.inputs_file is None:
        raise ShapetraceError(
            "no input is given; give --input, such as --input x:float32[B=2,n=16]"
        )
    aliases = read_aliases(request.aliases)
    from shapetrace.capture.inputs import check_signature  # noqa: PLC0415 - these need torch
    from shapetrace.capture.proving import Proof  # noqa: PLC0415
    from shapetrace.capture.target import resolve  # noqa: PLC0415

    target = resolve(request.target, request.arguments, request.hf_config)
    inputs = read_inputs(request)
    progress(f"making {request.target}")
    model = target.build(seed=request.seed).eval()
    check_signature(model, inputs)
    origin = origin_file(request.target)
    runs = run_all(target, model, inputs, aliases, progress)
    text = (request.target, tuple(request.arguments), tuple(request.hf_config))
    place = own_sources(runs.traces, origin)
    proof = Proof(model, runs.calls, text, request.seed)
    return finish(runs, proof, place, wishes or Wishes(), guard=guard, progress=progress)


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
    progress("proving the annotations")
    files, told, checks = _proven(inferred, sources, proof, wishes, guard)
    left_out = [*inferred.left_out, *told, *(one for file in files for one in file.left_out)]
    ran = tuple(tuple(sizes.items()) for sizes in runs.sizes)
    return Annotated(files, tuple(left_out), inferred.tensors, checks, ran, root)


def _only(wishes: Wishes) -> str:
    return f" under --only {' '.join(wishes.only)}" if wishes.only else ""


def _proven(
    inferred: Inferred,
    sources: Mapping[str, bytes],
    proof: Proof,
    wishes: Wishes,
    guard: Callable[[str], None],
) -> tuple[tuple[Rewritten, ...], list[LeftOut], int]:
    """Rewrite and run until every annotation that is left holds."""
    plans, amendments = inferred.files, Amendments()
    for _ in range(_ROUNDS):
        files = tuple(rewrite(sources[plan.file], plan, replace=wishes.replace) for plan in plans)
        changed = [file.file for file in files if file.changed]
        for name in changed:
            guard(name)
        if not changed:
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


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ShapetraceError(f"cannot read {file}: {error.strerror or error}") from error
