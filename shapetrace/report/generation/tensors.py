"""The tensors of a generation: each kind of pass, its first beside its last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.report.document import Line, build_report, table_lines
from shapetrace.report.generation.records import STEPS, PassRun, pass_runs

if TYPE_CHECKING:
    from shapetrace.records.trace import Trace
    from shapetrace.report.generation.records import Generation
    from shapetrace.report.language.words import Language


@dataclass(frozen=True, slots=True)
class PassTensors:
    """The tensors of the passes of one kind that follow each other.

    Attributes:
        run: The passes.
        lines: For each tensor, its line of the first pass and of the last.
    """

    run: PassRun
    lines: tuple[tuple[Line, Line], ...]


def tensors_by_run(generation: Generation, language: Language) -> list[PassTensors]:
    """The named tensors of each run of equal passes; none where nothing was traced."""
    trace = generation.trace
    if trace is None:
        return []
    by_pass = _lines_by_pass(trace, language)
    shown, start = [], 0
    for run, count in zip(pass_runs(generation), _kept(generation, trace), strict=True):
        kept = by_pass[start : start + count]
        start += count
        shown.append(PassTensors(run, tuple(zip(kept[0], kept[-1], strict=False))))
    return shown


def _kept(generation: Generation, trace: Trace) -> list[int]:
    """How many passes of each run stand in the folded trace."""
    left_out = sum(fold.times for fold in trace.folds)
    counts = [len(run.passes) for run in pass_runs(generation)]
    if counts:
        counts[-1] -= left_out
    return counts


def _lines_by_pass(trace: Trace, language: Language) -> list[list[Line]]:
    """The lines of the trace's table, a list for each pass in it."""
    report = build_report(trace, "tensors", language, folded=True, kept_only=True)
    passes: list[list[Line]] = []
    inside = 0
    for line in table_lines(report):
        if line.is_call and line.row.path in STEPS:
            passes += [[] for _ in range(line.times)]
            inside = line.depth
        elif passes and line.depth > inside:
            passes[-1].append(line)
    return passes
