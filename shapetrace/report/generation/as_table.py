"""A generation for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.report.generation.records import runs, totals
from shapetrace.report.generation.tensors import tensors_by_run
from shapetrace.report.language.wording import cost
from shapetrace.report.language.words import word
from shapetrace.report.layout.grid import Pen
from shapetrace.report.layout.small import Rows, small_table
from shapetrace.units import (
    FLOP_CONVENTION,
    format_bytes,
    format_count,
    format_flops,
    format_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shapetrace.report.document import Line
    from shapetrace.report.formats.reporter import Canvas
    from shapetrace.report.generation.records import Generation, Run
    from shapetrace.report.generation.tensors import PassTensors
    from shapetrace.report.language.words import Language


def as_table(generation: Generation, canvas: Canvas, language: Language = "en") -> str:
    """The passes, folded, with their shapes; then the totals."""
    pen = Pen(canvas.color)
    lines = [*_passes(generation, pen, canvas, language), ""]
    for group in tensors_by_run(generation, language):
        lines += [*_shapes(group, pen, canvas, language), ""]
    lines += _totals(generation, pen, canvas, language)
    return "".join(f"{line}\n" for line in lines)


def _passes(generation: Generation, pen: Pen, canvas: Canvas, language: Language) -> Iterator[str]:
    names = ("pass", "times", "n", "m", "FLOPs", "KV cache", "wall time")
    heading = tuple(word(name, language) for name in names)
    cells = (heading, *(_pass_row(run, language) for run in runs(generation)))
    yield from small_table(Rows(cells, right=tuple(range(1, 7))), pen, canvas.width)


def _pass_row(run: Run, language: Language) -> tuple[str, ...]:
    first, last = run.passes[0], run.passes[-1]
    return (
        word(run.kind, language),
        str(len(run.passes)),
        run.span("n"),
        run.span("m"),
        _ends(format_flops(first.flops), format_flops(last.flops)),
        _ends(format_bytes(first.kv_cache_bytes), format_bytes(last.kv_cache_bytes)),
        format_seconds(sum(step.seconds for step in run.passes)),
    )


def _ends(first: str, last: str) -> str:
    return first if first == last else f"{first} ... {last}"


def _shapes(group: PassTensors, pen: Pen, canvas: Canvas, language: Language) -> Iterator[str]:
    yield pen.paint(group.run.label(word(group.run.kind, language)), "bold")
    names = ("tensor", "named shape", "sizes", "FLOPs", "meaning")
    heading = tuple(word(name, language) for name in names)
    base = min((line.depth for line, _ in group.lines), default=0)
    rows = (_tensor_row(line, last, line.depth - base) for line, last in group.lines)
    yield from small_table(Rows((heading, *rows), right=(3,)), pen, canvas.width)


def _tensor_row(line: Line, last: Line, depth: int) -> tuple[str, ...]:
    row = line.row
    return (
        "  " * depth + line.label,
        "" if line.is_call else row.marked_dims,
        "" if line.is_call else _sizes(row.shape or (), last.row.shape or ()),
        _ends(cost(row), cost(last.row)),
        row.meaning,
    )


def _sizes(first: Sequence[int], last: Sequence[int]) -> str:
    """Sizes; those that move from step to step with both their ends."""
    return " ".join(str(a) if a == b else f"{a}...{b}" for a, b in zip(first, last, strict=False))


def _totals(generation: Generation, pen: Pen, canvas: Canvas, language: Language) -> Iterator[str]:
    sums = totals(generation)
    speed = f"{sums['tokens_per_second']:.1f} {word('tokens per second', language)}"
    took = f"{format_count(sums['tokens'])} ({format_seconds(sums['seconds'])}, {speed})"
    yield from _said("tokens", took, pen, canvas, language)
    if generation.uses_cache:
        per = format_bytes(sums["kv_cache_bytes_per_token"])
        text = f"{format_bytes(sums['kv_cache_bytes'])} ({per} {word('per token', language)})"
        yield from _said("KV cache", text, pen, canvas, language)
    counted = word(f"counted from the {generation.counted}", language)
    yield from _said("FLOPs", f"{format_flops(sums['flops'])} ({counted})", pen, canvas, language)
    if generation.uses_cache:
        without = format_flops(sums["flops_without_cache"])
        note = word("counted from the closed form, the last position scored", language)
        yield from _said("FLOPs without the cache", f"{without} ({note})", pen, canvas, language)
        share = 100 * sums["flops_saved"] / sums["flops_without_cache"]
        text = f"{format_flops(sums['flops_saved'])} ({share:.1f}%)"
        yield from _said("saved by the cache", text, pen, canvas, language)
    yield from _said("convention", word(FLOP_CONVENTION, language), pen, canvas, language)


def _said(label: str, text: str, pen: Pen, canvas: Canvas, language: Language) -> Iterator[str]:
    yield from pen.labelled(word(label, language), text, "bold", canvas.width)
