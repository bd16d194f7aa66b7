"""What checks come to: findings and counts over several runs."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shapetrace.check.alternatives import Alternatives
from shapetrace.check.findings import Finding, NamedSizes, from_misfits, gathered, kept
from shapetrace.check.misfit import AnnotationPlace
from shapetrace.check.mismatch import short_path

if TYPE_CHECKING:
    from shapetrace.capture.declared.judge_values import Judged
    from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Checked:
    """What checking came to.

    Attributes:
        target: What was checked.
        findings: What is wrong, in the order of the source.
        silenced: How many more a comment silences.
        runs: The sizes of each run: all of the first, and what was changed in the others.
        annotations: Places with an annotation that a run came through.
        values: Values that were compared with one.
        notes: What could not be done, one line each.
        unchecked: Functions with annotations that nothing was compared with, and why.
        error: How the model failed on its inputs; None when it did not.
    """

    target: str
    findings: tuple[Finding, ...]
    silenced: int = 0
    runs: tuple[NamedSizes, ...] = ()
    annotations: int = 0
    values: int = 0
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    error: BaseException | None = None


@dataclass(slots=True)
class Tally:
    """Findings and counts over several runs, while they are gathered.

    Attributes:
        findings: Of each run.
        runs: The sizes of each.
        places: Annotations that values were compared with.
        values: How many values were compared.
        notes: What could not be done.
        missing: Annotations that some run did not come to, and why.
        alternatives: Which alternatives of unions were seen.
    """

    findings: list[list[Finding]] = field(default_factory=list)
    runs: list[NamedSizes] = field(default_factory=list)
    places: set[AnnotationPlace] = field(default_factory=set)
    values: int = 0
    notes: list[str] = field(default_factory=list)
    missing: dict[AnnotationPlace, str] = field(default_factory=dict)
    alternatives: Alternatives = field(default_factory=Alternatives)

    def add(
        self,
        trace: Trace,
        sizes: NamedSizes,
        findings: Iterable[Finding],
        whole: Judged | None = None,
    ) -> None:
        """Count a run.

        Args:
            trace: What was recorded.
            sizes: What was changed for it.
            findings: What is wrong with its tensors.
            whole: The verdict on its whole values, where they were looked at.
        """
        self.runs.append(sizes)
        self.alternatives.add(trace)
        found = list(findings)
        for record in trace.tensors:
            site = trace.sites[record.site]
            if record.declared is not None and not site.internal:
                line = 0 if site.kind in ("argument", "return") else site.line
                self.places.add(AnnotationPlace(site.file, site.function, site.name, line))
                self.values += 1
        if whole is not None:
            changed = sizes if len(self.runs) > 1 else ()
            found += from_misfits(whole.misfits, found, changed)
            self.places |= {replace(place, line=0) for place in whole.places}
            self.values += whole.values
            self.missing.update((one.place, one.reason) for one in whole.unchecked)
        self.findings.append(found)

    def _unchecked(self, own: Callable[[str], bool]) -> Iterator[str]:
        """The annotations that no run came to, a line per function."""
        by_function: dict[tuple[str, str, str], list[str]] = {}
        missing = sorted(self.missing.items(), key=lambda one: (one[0].file, one[0].line))
        for place, reason in missing:
            if replace(place, line=0) not in self.places and own(place.file):
                key = (place.file, place.function, reason)
                by_function.setdefault(key, []).append(place.name)
        for (file, function, reason), names in by_function.items():
            places = ", ".join(f"`{name}`" for name in names)
            yield f"{short_path(file)}: {function} ({places}) {reason}"

    def result(
        self, target: str, codes: frozenset[str], own: Callable[[str], bool] = lambda _: True
    ) -> Checked:
        """What it came to.

        Args:
            target: What was checked.
            codes: The rules that are on.
            own: Whether a file is the user's; findings elsewhere are left out.
        """
        # A rule that is off must not stand in the way of another's finding at the same place.
        chosen = [
            [one for one in run if one.code in codes]
            for run in (*self.findings, self.alternatives.findings())
        ]
        found = [one for one in gathered(chosen) if own(one.file)]
        sources = {one.file: "".join(linecache.getlines(one.file)) for one in found}
        loud, silenced = kept(found, codes, sources)
        notes = tuple(dict.fromkeys(self.notes))
        runs, places = tuple(self.runs), len(self.places)
        return Checked(
            target=target,
            findings=loud,
            silenced=silenced,
            runs=runs,
            annotations=places,
            values=self.values,
            notes=notes,
            unchecked=tuple(self._unchecked(own)),
        )
