"""What is shown of a generation to people: its passes, their tensors, the sums; no format yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.report.generation.records import pass_runs, totals
from shapetrace.report.language.words import word
from shapetrace.report.layout.small import SmallTable
from shapetrace.report.wording import cost
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
    from shapetrace.report.generation.records import Generation, PassRun
    from shapetrace.report.generation.tensors import PassTensors
    from shapetrace.report.language.words import Language


def passes(generation: Generation, language: Language) -> SmallTable:
    """The passes, equal ones in one row."""
    names = ("pass", "times", "n", "m", "FLOPs", "KV cache", "wall time")
    heading = tuple(word(name, language) for name in names)
    cells = (heading, *(_pass_row(run, language) for run in pass_runs(generation)))
    shown = len(names) if generation.valued else len(names) - 1  # without values time says nothing
    return SmallTable(tuple(row[:shown] for row in cells), right=tuple(range(1, shown)))


def _pass_row(run: PassRun, language: Language) -> tuple[str, ...]:
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


def shapes(group: PassTensors, language: Language) -> tuple[str, SmallTable]:
    """The tensors of passes of one kind, with what passes they are of."""
    names = ("tensor", "named shape", "sizes", "FLOPs", "meaning")
    heading = tuple(word(name, language) for name in names)
    base = min((line.depth for line, _ in group.lines), default=0)
    rows = (_tensor_row(line, last, line.depth - base) for line, last in group.lines)
    return group.run.label(word(group.run.kind, language)), SmallTable((heading, *rows), right=(3,))


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


def generation_sums(generation: Generation, language: Language) -> Iterator[tuple[str, str]]:
    """The totals: what each is called, and the number."""
    found = totals(generation)
    tokens = format_count(found["tokens"])
    if generation.valued:
        speed = f"{found['tokens_per_second']:.1f} {word('tokens per second', language)}"
        tokens = f"{tokens} ({format_seconds(found['seconds'])}, {speed})"
    yield word("tokens", language), tokens
    if generation.uses_cache:
        per = format_bytes(found["kv_cache_bytes_per_token"])
        text = f"{format_bytes(found['kv_cache_bytes'])} ({per} {word('per token', language)})"
        yield word("KV cache", language), text
    counted = word(f"counted from the {generation.counted}", language)
    yield word("FLOPs", language), f"{format_flops(found['flops'])} ({counted})"
    if generation.uses_cache:
        without = format_flops(found["flops_without_cache"])
        note = word("counted from the closed form, the last position scored", language)
        yield word("FLOPs without the cache", language), f"{without} ({note})"
        share = 100 * found["flops_saved"] / found["flops_without_cache"]
        text = f"{format_flops(found['flops_saved'])} ({share:.1f}%)"
        yield word("saved by the cache", language), text
    if not generation.valued:
        yield word("not known without values", language), word("the text and its time", language)
    yield word("convention", language), word(FLOP_CONVENTION, language)
