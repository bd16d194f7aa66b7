"""Alternatives of unions that no value was ever seen to be: right as far as runs tell, and idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from shapetrace.check.explain import reasons
from shapetrace.check.findings import Finding
from shapetrace.check.rules import rule_of
from shapetrace.dims import DeclaredShape

if TYPE_CHECKING:
    from shapetrace.records.trace import Trace

Where: TypeAlias = tuple[str, int, str, str, str]
"""File, line, function, name and the annotation as written."""


@dataclass(slots=True)
class Alternatives:
    """Which alternatives of unions were seen, over several runs.

    Attributes:
        seen: By place, each alternative, and whether a value was it.
    """

    seen: dict[Where, dict[DeclaredShape, bool]] = field(default_factory=dict)

    def add(self, trace: Trace) -> None:
        """Note what the values of a run were."""
        for index, record in enumerate(trace.tensors):
            declared, site = record.declared, trace.sites[record.site]
            if declared is None or len(declared.shapes) < 2 or site.internal:  # noqa: PLR2004 - a union
                continue
            line = site.line if site.kind != "return" else 0
            where = (site.file, line, site.function, site.name + record.element, declared.text)
            known = self.seen.setdefault(where, dict.fromkeys(declared.shapes, False))
            for shape in declared.shapes:
                known[shape] |= not reasons(trace, index, shape, {})

    def findings(self) -> Iterator[Finding]:
        """The alternatives that nothing was, a finding for each."""
        rule = rule_of("never-seen")
        for (file, line, function, name, text), shapes in self.seen.items():
            for shape, seen in shapes.items():
                if not seen:
                    yield Finding(
                        code=rule.code,
                        rule=rule.name,
                        kind="never-seen",
                        file=file,
                        line=line,
                        function=function,
                        name=name,
                        path="",
                        reasons=(_line(shape, name, function),),
                        observed="",
                        annotated=text,
                        fix="run what makes it so, or leave the alternative out",
                    )


def _line(shape: DeclaredShape, name: str, function: str) -> str:
    seen = f'nothing was `{shape.dtype} "{shape.dims}"` in any run'
    return f"{seen}: `{name}` of `{function}` allows more than was seen"
