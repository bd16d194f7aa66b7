"""From what runs showed to source that is proven: rewrite, run, compare, mend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shapetrace.annotation.inference.infer import Inferred, Wishes
from shapetrace.annotation.plan.amend import Amendments, Fault, function_lines
from shapetrace.annotation.plan.plans import LeftOut, Rewritten
from shapetrace.annotation.rewriting.rewrite import rewrite
from shapetrace.capture.proof.messages import Verdict
from shapetrace.capture.proof.proof import Proof
from shapetrace.errors import ShapetraceError

_ROUNDS = 6
"""Weaken once, drop once, and what that uncovers."""


@dataclass(frozen=True, slots=True)
class Proven:
    """Source that was run with every annotation checked.

    Attributes:
        files: Each file's old and new source.
        told: What had to be weakened or dropped.
        checks: How many values were checked.
        equal: In how many runs the outputs were compared, and equal to the bit.
    """

    files: tuple[Rewritten, ...]
    told: tuple[LeftOut, ...]
    checks: int = 0
    equal: int = 0


def proven(
    inferred: Inferred,
    sources: Mapping[str, bytes],
    proof: Proof,
    wishes: Wishes,
    guard: Callable[[str], None],
) -> Proven:
    """Rewrite and run until every annotation that is left holds.

    Args:
        inferred: What to write.
        sources: The files as they are.
        proof: How to run them.
        wishes: How to write.
        guard: Called with each file that would change; it may refuse.

    Raises:
        ShapetraceError: The new source does not run, or computes something else.
    """
    plans, amendments = inferred.files, Amendments()
    for _ in range(_ROUNDS):
        files = tuple(rewrite(sources[plan.file], plan, replace=wishes.replace) for plan in plans)
        changed = [file.file for file in files if file.changed]
        for name in changed:
            guard(name)
        told = tuple(amendments.told.values())
        if not changed:
            return Proven(files, told)
        verdict = _verdict(files, proof)
        if not verdict.failed:
            equal = _compared(verdict, proof, {name: sources[name] for name in changed})
            return Proven(files, tuple(amendments.told.values()), verdict.checks, equal)
        plans = amendments.amend(plans, _faults(verdict, sources))
    raise ShapetraceError(
        "the annotations could not be made to hold: the model behaves differently in each run"
    )


def _compared(verdict: Verdict, proof: Proof, originals: Mapping[str, bytes]) -> int:
    """In how many runs the outputs are those of the source as it was, to the bit.

    None are compared where that source does not give the same bits twice. Processes may
    differ in their bits (threads, alignment), so that the last word has a run of the old
    source under the same conditions.
    """
    if verdict.outputs == proof.expected():
        return len(verdict.outputs)
    once, again = proof.of(originals, {}, {}), proof.of(originals, {}, {})
    if once.error or once.outputs != again.outputs:
        return 0
    if once.outputs != verdict.outputs:
        raise ShapetraceError(
            "the model computes something else with annotations: some of its code depends on "
            "them (dataclass fields, inspect.signature); leave that out with --only"
        )
    return len(verdict.outputs)


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
