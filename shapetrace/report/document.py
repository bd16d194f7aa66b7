"""A report before it has a format: rows, their tree, totals, mismatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.check import Mismatch, check
from shapetrace.cost import Prices, Summary, price, summarise
from shapetrace.records.folds import expand
from shapetrace.records.trace import Trace
from shapetrace.report import rows as rows_of
from shapetrace.report.folding import Folder, nested_once
from shapetrace.report.language.words import Language
from shapetrace.report.rows import Level, Row
from shapetrace.report.tree import Call, Repeat, grow, hoisted, prune, walkable, without_echoes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.report.tree import Item


@dataclass(frozen=True, slots=True)
class Report:
    """All that a format may show, with nothing left to compute.

    Attributes:
        trace: The run.
        level: What a row is.
        folded: Whether equal layers are shown once.
        language: Of headings and meanings.
        rows: Every row of that level, in the order of the run, unfolded.
        tree: The same rows under their calls; None for a trace without calls.
        totals: Sums over the run.
        mismatches: Annotations that did not hold, or hold by accident.
    """

    trace: Trace
    level: Level
    folded: bool
    language: Language
    rows: tuple[Row, ...]
    tree: Call | None
    totals: Summary
    mismatches: tuple[Mismatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table.

    Attributes:
        depth: How deep its call lies.
        label: What stands in the first column.
        row: The row.
        is_call: Whether it heads a call.
        times: How many equal ones it stands for.
        failed: Whether the call that it heads ended by raising.
    """

    depth: int
    label: str
    row: Row
    is_call: bool
    times: int = 1
    failed: bool = False


def build_report(
    trace: Trace, level: Level, language: Language, *, folded: bool, kept_only: bool = False
) -> Report:
    """All that a format may show of a trace: what things cost, what does not fit, the rows.

    Args:
        trace: The run.
        level: What a row is.
        language: Of headings and meanings.
        folded: Whether equal layers are shown once.
        kept_only: Whether steps that the trace leaves out stay out; else they are put back.
    """
    trace = trace if kept_only else expand(trace)
    prices = price(trace)
    rows, tree = _rows(trace, level, prices, language)
    totals = summarise(trace, prices)
    return Report(
        trace=trace,
        level=level,
        folded=folded,
        language=language,
        rows=rows,
        tree=tree,
        totals=totals,
        mismatches=tuple(check(trace)),
    )


def _rows(
    trace: Trace, level: Level, prices: Prices, language: Language
) -> tuple[tuple[Row, ...], Call | None]:
    """The rows of a level, flat and as a tree."""
    calls = rows_of.module_rows(trace, prices)
    if level == "modules":
        return tuple(calls), grow(trace, calls, ())
    if level == "ops":
        rows = rows_of.op_rows(trace, prices)
    else:
        seen = rows_of.tensor_rows(trace, prices, language)
        outermost = _outside_all_code(trace)
        rows = [row for row in seen if not row.internal or _is_handed_over(row, outermost)]
    return tuple(rows), grow(trace, calls, rows)


def _outside_all_code(trace: Trace) -> frozenset[int]:
    """The calls of torch's modules that no other code makes: of a bare `nn.LSTM`, say."""
    torch_files = {site.file for site in trace.sites if site.internal}
    used = {record.scope for record in trace.tensors if not trace.sites[record.site].internal}
    bare: set[int] = set()
    for number, scope in enumerate(trace.scopes):
        is_inside = scope.parent is None or (scope.parent in bare and scope.file in torch_files)
        if is_inside and number not in used:
            bare.add(number)
    return frozenset(n for n in bare if trace.scopes[n].kind == "module")


def _is_handed_over(row: Row, calls: frozenset[int]) -> bool:
    """Whether it is what one of some calls takes or returns."""
    return row.scope in calls and row.kind in ("argument", "return")


def table_lines(report: Report) -> list[Line]:
    """The lines of a table for people: no empty calls, each value once, layers folded."""
    tree = report.tree
    if tree is None:
        return []
    with walkable(report.trace):
        left = tree if report.level == "modules" else prune(without_echoes(tree))
        if left is None:
            return []
        top = hoisted(left)
        if report.folded:
            top = nested_once(Folder().fold(top))
        return list(_lines(top))


def _lines(top: Call) -> Iterator[Line]:
    """The lines of a tree in order, however deep it is."""
    waiting: list[tuple[Item, int, int]] = [(top, 0, 1)]
    while waiting:
        item, depth, times = waiting.pop()
        more = "" if times == 1 else f" ... x{times}"
        if isinstance(item, Repeat):
            waiting += [(inner, depth, item.times) for inner in reversed(item.items)]
        elif isinstance(item, Call):
            deep = "" if item.deep == 1 else f" ... {item.deep} deep"
            label = f"{item.label}{deep}{more}"
            yield Line(depth, label, item.row, is_call=True, times=times, failed=item.failed)
            waiting += [(inner, depth + 1, 1) for inner in reversed(item.items)]
        else:
            yield Line(depth, f"{item.name}{more}", item, is_call=False, times=times)


def counted_rows(report: Report) -> list[tuple[Row, int]]:
    """Every row for programs, and how many equal ones it stands for (1 unless folded)."""
    if not report.folded or report.tree is None:
        return [(row, 1) for row in report.rows]
    with walkable(report.trace):
        folded = Folder().fold(report.tree)
    return list(_counted(folded, calls=report.level == "modules"))


def _counted(top: Call, *, calls: bool) -> Iterator[tuple[Row, int]]:
    waiting: list[tuple[Item, int]] = [(top, 1)]
    while waiting:
        item, times = waiting.pop()
        if isinstance(item, Repeat):
            waiting += [(inner, times * item.times) for inner in reversed(item.items)]
        elif isinstance(item, Call):
            if calls:
                yield item.row, times
            waiting += [(inner, times) for inner in reversed(item.items)]
        else:
            yield item, times
