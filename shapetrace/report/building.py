"""From a trace to a report: what things cost, what does not fit, and the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.check import check
from shapetrace.cost import price, summarise
from shapetrace.records.folds import expand
from shapetrace.report.document import Report, build_rows
from shapetrace.report.rows import Costs

if TYPE_CHECKING:
    from shapetrace.records.trace import Trace
    from shapetrace.report.language.words import Language
    from shapetrace.report.rows import Level


def build_report(
    trace: Trace, level: Level, language: Language, *, folded: bool, kept_only: bool = False
) -> Report:
    """All that a format may show of a trace.

    Args:
        trace: The run.
        level: What a row is.
        language: Of headings and meanings.
        folded: Whether equal layers are shown once.
        kept_only: Whether steps that the trace leaves out stay out; else they are put back.
    """
    trace = trace if kept_only else expand(trace)
    prices = price(trace)
    rows, tree = build_rows(trace, level, Costs(trace, prices), language)
    totals = summarise(trace, prices)
    return Report(trace, level, folded, language, rows, tree, totals, tuple(check(trace)))
