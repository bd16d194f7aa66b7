"""What checks come to: findings and counts over several runs."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shapetrace.check.findings import Finding, Sizes, gathered, kept

if TYPE_CHECKING:
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
        error: How the model failed on its inputs; None when it did not.
    """

    target: str
    findings: tuple[Finding, ...]
    silenced: int = 0
    runs: tuple[Sizes, ...] = ()
    annotations: int = 0
    values: int = 0
    notes: tuple[str, ...] = ()
    error: BaseException | None = None


@dataclass(slots=True)
class Tally:
    """Findings and counts over several runs, while they are gathered.

    Attributes:
        findings: Of each run.
        runs: The sizes of each.
        places: Annotated places that were met.
        values: How many values were compared.
        notes: What could not be done.
    """

    findings: list[list[Finding]] = field(default_factory=list)
    runs: list[Sizes] = field(default_factory=list)
    places: set[tuple[str, int, str]] = field(default_factory=set)
    values: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, trace: Trace, sizes: Sizes, findings: Iterable[Finding]) -> None:
        """Count a run."""
        self.runs.append(sizes)
        self.findings.append(list(findings))
        for record in trace.tensors:
            site = trace.sites[record.site]
            if record.declared is not None and not site.internal:
                self.places.add((site.file, site.line, site.name + record.element))
                self.values += 1

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
        chosen = [[one for one in run if one.code in codes] for run in self.findings]
        found = [one for one in gathered(chosen) if own(one.file)]
        sources = {one.file: "".join(linecache.getlines(one.file)) for one in found}
        loud, silenced = kept(found, codes, sources)
        notes = tuple(dict.fromkeys(self.notes))
        runs, places = tuple(self.runs), len(self.places)
        return Checked(target, loud, silenced, runs, places, self.values, notes)
