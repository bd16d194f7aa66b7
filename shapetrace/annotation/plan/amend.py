"""Plans without what did not hold: weakened first, then dropped, and said so."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from shapetrace.annotation.plan.annotation import (
    Annotation,
    Array,
    DictOf,
    Repeated,
    TupleOf,
    Union,
)
from shapetrace.annotation.plan.plans import FilePlan, FunctionPlan, LeftOut


@dataclass(frozen=True, slots=True)
class Fault:
    """An annotation that did not hold.

    Attributes:
        file: Its file.
        line: Line of its function in the old source.
        name: Parameter, variable or ``return``.
        reason: What came instead.
    """

    file: str
    line: int
    name: str
    reason: str


def function_lines(source: bytes) -> tuple[int, ...]:
    """Lines of the ``def`` of every function of a file, in order."""
    nodes = ast.walk(ast.parse(source))
    return tuple(
        sorted(n.lineno for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    )


@dataclass(slots=True)
class Amendments:
    """What had to be weakened or dropped so far.

    Attributes:
        weak: Places whose sizes are given up already.
        told: What to tell of it; the last word on each place.
    """

    weak: set[tuple[str, int, str]] = field(default_factory=set)
    told: dict[tuple[str, int, str], LeftOut] = field(default_factory=dict)

    def amend(self, plans: Iterable[FilePlan], faults: Iterable[Fault]) -> tuple[FilePlan, ...]:
        """The plans with each faulty annotation weakened; one that was weak is dropped."""
        by_place = {(fault.file, fault.line, fault.name): fault for fault in faults}
        amended = []
        for plan in plans:
            functions = [self._function(plan.file, f, by_place) for f in plan.functions]
            kept = tuple(function for function in functions if function.count)
            amended.append(FilePlan(plan.file, kept))
        return tuple(plan for plan in amended if plan.functions)

    def _function(
        self,
        file: str,
        function: FunctionPlan,
        faults: Mapping[tuple[str, int, str], Fault],
    ) -> FunctionPlan:
        def mend(name: str, annotation: Annotation | None) -> Annotation | None:
            place = (file, function.line, name)
            if annotation is None or place not in faults:
                return annotation
            return self._mended(annotation, function, faults[place])

        parameters = ((name, mend(name, old)) for name, old in function.parameters)
        variables = ((local, mend(local.name, local.annotation)) for local in function.locals)
        changed = replace(
            function,
            parameters=tuple((name, new) for name, new in parameters if new is not None),
            returns=mend("return", function.returns),
            locals=tuple(
                replace(local, annotation=new) for local, new in variables if new is not None
            ),
        )
        self.weak |= {place for place in faults if place[:2] == (file, function.line)}
        return changed

    def _mended(
        self, annotation: Annotation, function: FunctionPlan, fault: Fault
    ) -> Annotation | None:
        place = (fault.file, fault.line, fault.name)
        weaker = weakened(annotation)
        drop = place in self.weak or weaker == annotation
        verb = "dropped" if drop else "weakened to its rank"
        self.told[place] = LeftOut(
            fault.file, fault.line, function.qualname, fault.name, f"{verb}: {fault.reason}"
        )
        return None if drop else weaker


def weakened(annotation: Annotation) -> Annotation:
    """An annotation that keeps dtypes and ranks and says nothing of sizes."""
    match annotation:
        case Array(dtype, axes):
            if any(axis.startswith("*") or axis == "..." for axis in axes):
                return Array(dtype, ("...",))
            return Array(dtype, ("_",) * len(axes))
        case TupleOf(items):
            return TupleOf(tuple(weakened(item) for item in items))
        case Repeated(container, item):
            return Repeated(container, weakened(item))
        case DictOf(key, value):
            return DictOf(key, weakened(value))
        case Union(options):
            return Union(tuple(dict.fromkeys(weakened(option) for option in options)))
    return annotation
