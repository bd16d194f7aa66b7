"""Findings: what is wrong, by rule and place, gathered over several runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shapetrace.check.mismatch import short_path
from shapetrace.check.rules import rule_of

if TYPE_CHECKING:
    from shapetrace.check.enforcement import Unenforced
    from shapetrace.check.misfit import Misfit
    from shapetrace.check.mismatch import Mismatch
    from shapetrace.records.trace import Trace

NamedSizes = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: The rule's code.
        rule: The rule's name.
        kind: What is wrong, finer than the rule: ``size``, ``literal``, ``rank``, ...
        file: Source file of the annotation.
        line: Its line.
        function: The function that carries it.
        name: The value: a parameter, a variable, an attribute, ``return``; or empty.
        path: Path of the call that showed it.
        reasons: What is wrong, one line each.
        observed: Dtype and sizes that came: ``f32[7, 5]``; or empty.
        annotated: The dims as declared; or the annotation.
        fix: What to do.
        calls: How many calls of the same code show it in one run.
        sizes: What was changed in the first run that shows it; empty for the run as asked.
    """

    code: str
    rule: str
    kind: str
    file: str
    line: int
    function: str
    name: str
    path: str
    reasons: tuple[str, ...]
    observed: str
    annotated: str
    fix: str
    calls: int = 1
    sizes: NamedSizes = ()

    @property
    def message(self) -> str:
        """What is wrong, on one line."""
        return "; ".join(reason.strip() for reason in self.reasons) + _at(self.sizes)

    @property
    def text(self) -> str:
        """The finding for people, several lines without a last newline."""
        first, *others = self.reasons
        seen = (
            f"observed {self.observed}   annotated {quoted(self.annotated)}   "
            if self.observed
            else ""
        )
        lines = [
            f"{self.code} {first}",
            *others,
            f"  {seen}{short_path(self.file)}:{self.line}",
            f"  fix: {self.fix}",
        ]
        if self.sizes:
            lines.append(f"  seen{_at(self.sizes)}")
        if self.calls > 1:
            lines.append(f"  the same in {self.calls} calls")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text


def quoted(annotated: str) -> str:
    """Dims in quotes; a whole annotation, which has its own, as it is."""
    return annotated if '"' in annotated or "[" in annotated else f'"{annotated}"'


def _at(sizes: NamedSizes) -> str:
    return " with " + ", ".join(f"{name}={size}" for name, size in sizes) if sizes else ""


def from_mismatches(
    trace: Trace, mismatches: Iterable[Mismatch], sizes: NamedSizes = ()
) -> list[Finding]:
    """Findings about the values of a run.

    Args:
        trace: The run.
        mismatches: What `check` found in it.
        sizes: What was changed for this run.
    """
    return [_of_mismatch(trace, mismatch, sizes) for mismatch in mismatches]


def _of_mismatch(trace: Trace, found: Mismatch, sizes: NamedSizes) -> Finding:
    record = trace.tensors[found.tensor]
    site = trace.sites[record.site]
    rule = rule_of(found.kind)
    return Finding(
        code=rule.code,
        rule=rule.name,
        kind=found.kind,
        file=found.file,
        line=found.line,
        function=site.function,
        name=site.name + record.element,
        path=found.path,
        reasons=found.reasons,
        observed=found.observed,
        annotated=found.annotated,
        fix=found.fix,
        calls=found.calls,
        sizes=sizes,
    )


def from_misfits(
    misfits: Iterable[Misfit], known: Iterable[Finding], sizes: NamedSizes = ()
) -> list[Finding]:
    """Findings about whole values, where none speaks of a tensor in the same value.

    Args:
        misfits: What type checkers refuse.
        known: Findings of the same run.
        sizes: What was changed for this run.
    """
    told = {(one.file, one.function, one.name.partition("[")[0].partition(".")[0]) for one in known}
    fresh = (one for one in misfits if (one.file, one.function, one.name) not in told)
    return [_of_misfit(one, sizes) for one in fresh]


def _of_misfit(found: Misfit, sizes: NamedSizes) -> Finding:
    rule = rule_of(found.kind)
    return Finding(
        code=rule.code,
        rule=rule.name,
        kind=found.kind,
        file=found.file,
        line=found.line,
        function=found.function,
        name=found.name,
        path="",
        reasons=found.reasons,
        observed=found.observed,
        annotated=found.annotated,
        fix=found.fix,
        calls=found.calls,
        sizes=sizes,
    )


def by_accident(findings: Iterable[Finding]) -> list[Finding]:
    """What does not hold once the model is built at other sizes: it held by today's numbers."""
    rule = rule_of("probe")
    return [
        replace(
            one,
            code=rule.code,
            rule=rule.name,
            fix="say what the axis is, or give it a name of its own; it fits at today's sizes alone",
        )
        for one in findings
        if one.kind not in ("unresolved", "pinned", "probe")
    ]


def from_unenforced(found: Iterable[Unenforced]) -> list[Finding]:
    """Findings about functions that nothing checks."""
    return [_of_unenforced(one) for one in found]


def _of_unenforced(found: Unenforced) -> Finding:
    one, rule = found.signature, rule_of(found.kind)
    names = ", ".join(f"`{name}`" for name in one.annotated)
    if found.kind == "toothless":
        why = "`jaxtyped` has no type checker"
        fix = "write @jaxtyped(typechecker=beartype), or put @beartype below it"
    elif found.kind == "forgotten":
        why = f"it has no decorator, as `{found.example}` in the same file has"
        fix = "write @jaxtyped(typechecker=beartype) above it"
    else:
        why = "it has no decorator, and no import hook is in force"
        fix = "write @jaxtyped(typechecker=beartype) above it, or install jaxtyping's import hook"
    return Finding(
        code=rule.code,
        rule=rule.name,
        kind=found.kind,
        file=one.file,
        line=one.line,
        function=one.function,
        name="",
        path="",
        reasons=(f"the annotations of `{one.function}` ({names}) are not enforced: {why}",),
        observed="",
        annotated="",
        fix=fix,
    )


def gathered(runs: Sequence[Iterable[Finding]]) -> tuple[Finding, ...]:
    """The findings of several runs, each once: that of the first run that shows it.

    Of a value that an earlier run has shown to be wrong, later runs add nothing.
    """
    known: dict[tuple[object, ...], Finding] = {}
    for findings in runs:
        seen = {_place(one) for one in known.values()}
        for one in findings:
            if _place(one) not in seen:
                known.setdefault((*_place(one), one.code, one.reasons), one)
    return tuple(sorted(known.values(), key=lambda one: (one.file, one.line, one.code)))


def _place(one: Finding) -> tuple[object, ...]:
    return one.file, one.line, one.function, one.name


def kept(
    findings: Iterable[Finding], codes: frozenset[str], sources: Mapping[str, str]
) -> tuple[tuple[Finding, ...], int]:
    """The findings of the rules that are on, and how many of them a comment silences.

    Args:
        findings: All of them.
        codes: The rules that are on.
        sources: Source text by file.
    """
    from shapetrace.check.silence import Silence  # noqa: PLC0415 - reads sources

    wanted = [one for one in findings if one.code in codes]
    silences = {file: Silence(text) for file, text in sources.items()}
    loud = tuple(
        one
        for one in wanted
        if one.file not in silences
        or not silences[one.file].covers(one.line, one.code, returns=one.name.startswith("return"))
    )
    return loud, len(wanted) - len(loud)
