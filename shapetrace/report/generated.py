"""What a generation made and cost, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shapetrace.report.building import build_report
from shapetrace.report.document import table_lines
from shapetrace.report.grid import GAP, Pen, Track, wrap
from shapetrace.report.wording import cost
from shapetrace.report.words import word
from shapetrace.trace.records import Trace
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
    from shapetrace.report.reporter import Canvas
    from shapetrace.report.words import Language

NARROWEST = 8
"""Cells that a column keeps on the narrowest screen."""
FORMAT_VERSION = 1
STEPS = ("read_sources()", "advance()", "recomputed()")
"""The calls that are a generation's passes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One text that was made.

    Attributes:
        prompt: What it continues; of an encoder-decoder, the source.
        text: What was made.
        token_ids: The ids of what was made.
    """

    prompt: str
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of a generation, and what it cost.

    Attributes:
        kind: ``encode``, ``prefill`` or ``decode``.
        n: Tokens that went in, of each text.
        m: Tokens that could be looked at.
        flops: Counted from the operators that ran, or by the closed form.
        kv_cache_bytes: Bytes of keys and values kept after it.
        seconds: Wall time.
    """

    kind: str
    n: int
    m: int
    flops: int
    kv_cache_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generation made and cost.

    Attributes:
        name: The model.
        config: Its configuration, name and value pairs.
        item_bytes: Bytes of one number in the cache.
        samples: The texts.
        passes: Its passes, in order.
        counted: Where the passes' FLOPs come from: ``operators`` or ``closed form``.
        flops_without_cache: FLOPs of the same steps with everything worked out anew each
            time, by the closed form.
        trace: The run, equal steps folded; None where it was not traced.
    """

    name: str
    config: tuple[tuple[str, int | float | bool | str | None], ...]
    item_bytes: int
    samples: tuple[Sample, ...]
    passes: tuple[Pass, ...]
    counted: str
    flops_without_cache: int
    trace: Trace | None

    @property
    def flops(self) -> int:
        """FLOPs of all passes."""
        return sum(step.flops for step in self.passes)

    @property
    def seconds(self) -> float:
        """Wall time of all passes."""
        return sum(step.seconds for step in self.passes)

    @property
    def uses_cache(self) -> bool:
        """Whether keys and values were kept."""
        return self.passes[-1].kv_cache_bytes > 0

    @property
    def tokens(self) -> int:
        """Tokens that were made."""
        return sum(len(sample.token_ids) for sample in self.samples)


@dataclass(frozen=True, slots=True)
class Run:
    """Passes of one kind that follow each other.

    Attributes:
        passes: The passes.
    """

    passes: tuple[Pass, ...]

    @property
    def kind(self) -> str:
        """What they are."""
        return self.passes[0].kind

    def span(self, name: str) -> str:
        """The first and last of a number: ``17 ... 48``, or the one that all have."""
        first, last = (getattr(self.passes[place], name) for place in (0, -1))
        return str(first) if first == last else f"{first} ... {last}"


def runs(generation: Generation) -> list[Run]:
    """The passes folded: equal kinds together."""
    found: list[list[Pass]] = []
    for step in generation.passes:
        if found and found[-1][0].kind == step.kind:
            found[-1].append(step)
        else:
            found.append([step])
    return [Run(tuple(passes)) for passes in found]


def totals(generation: Generation) -> dict[str, Any]:
    """The sums, by name, as the JSON has them."""
    last = generation.passes[-1]
    seconds = generation.seconds
    per_token = last.kv_cache_bytes // last.m if generation.uses_cache else 0
    saved = generation.flops_without_cache - generation.flops
    return {
        "tokens": generation.tokens,
        "passes": len(generation.passes),
        "seconds": seconds,
        "tokens_per_second": generation.tokens / seconds if seconds else 0.0,
        "kv_cache_bytes": last.kv_cache_bytes,
        "kv_cache_bytes_per_token": per_token,
        "flops": generation.flops,
        "flops_counted_from": generation.counted,
        "flops_without_cache": generation.flops_without_cache,
        "flops_without_cache_counted_from": "closed form",
        "flops_saved": saved,
        "convention": FLOP_CONVENTION,
    }


def as_json(generation: Generation) -> str:
    """The generation as one JSON object."""
    body = {
        "format_version": FORMAT_VERSION,
        "target": generation.name,
        "config": dict(generation.config),
        "samples": [
            {"prompt": sample.prompt, "text": sample.text, "token_ids": list(sample.token_ids)}
            for sample in generation.samples
        ],
        "steps": [
            {
                "kind": step.kind,
                "n": step.n,
                "m": step.m,
                "flops": step.flops,
                "kv_cache_bytes": step.kv_cache_bytes,
                "seconds": step.seconds,
            }
            for step in generation.passes
        ],
        "totals": totals(generation),
        "tensors": _tensors(generation),
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _tensors(generation: Generation) -> list[dict[str, Any]]:
    """The named tensors of the prefill and of the first and last step of each run."""
    if generation.trace is None:
        return []
    return [
        {
            "pass": label,
            "path": line.row.path,
            "name": line.row.name,
            "dims": line.row.dims,
            "shape": list(line.row.shape or ()),
            "last_shape": list(last.row.shape or ()),
            "dtype": line.row.dtype,
            "flops": line.row.flops,
            "repeats": line.times,
        }
        for label, pairs in _shown(generation, "en")
        for line, last in pairs
        if not line.is_call
    ]


def as_table(generation: Generation, canvas: Canvas, language: Language = "en") -> str:
    """The passes, folded, with their shapes; then the totals."""
    pen = Pen(canvas.color)
    lines = [*_passes(generation, pen, canvas, language), ""]
    for label, pairs in _shown(generation, language):
        lines += [*_shapes(label, pairs, pen, canvas, language), ""]
    lines += _totals(generation, pen, canvas, language)
    return "".join(f"{line}\n" for line in lines)


def _passes(generation: Generation, pen: Pen, canvas: Canvas, language: Language) -> Iterator[str]:
    rows = [
        [
            word(name, language)
            for name in ("pass", "times", "n", "m", "FLOPs", "KV cache", "wall time")
        ]
    ]
    rows += [_pass_row(run, language) for run in runs(generation)]
    yield from _grid(rows, pen, right=range(1, 7), width=canvas.width)


def _pass_row(run: Run, language: Language) -> list[str]:
    first, last = run.passes[0], run.passes[-1]
    return [
        word(run.kind, language),
        str(len(run.passes)),
        run.span("n"),
        run.span("m"),
        _ends(format_flops(first.flops), format_flops(last.flops)),
        _ends(format_bytes(first.kv_cache_bytes), format_bytes(last.kv_cache_bytes)),
        format_seconds(sum(step.seconds for step in run.passes)),
    ]


def _ends(first: str, last: str) -> str:
    return first if first == last else f"{first} ... {last}"


def _shown(generation: Generation, language: Language) -> list[tuple[str, list[tuple[Line, Line]]]]:
    """The tables of shapes: each kind of pass, its first beside its last."""
    if generation.trace is None:
        return []
    by_pass = _lines_by_pass(generation.trace, language)
    counts = _kept(generation)
    shown, start = [], 0
    for run, count in zip(runs(generation), counts, strict=True):
        kept = by_pass[start : start + count]
        start += count
        pairs = list(zip(kept[0], kept[-1], strict=False))
        times = f" x{len(run.passes)}" if len(run.passes) > 1 else ""
        label = f"{run.kind}{times}: n = {run.span('n')}, m = {run.span('m')}"
        shown.append((label, pairs))
    return shown


def _kept(generation: Generation) -> list[int]:
    """How many passes of each run stand in the folded trace."""
    trace = generation.trace
    assert trace is not None  # noqa: S101 - the caller has looked
    left_out = sum(fold.times for fold in trace.folds)
    counts = [len(run.passes) for run in runs(generation)]
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


def _shapes(
    label: str, pairs: Sequence[tuple[Line, Line]], pen: Pen, canvas: Canvas, language: Language
) -> Iterator[str]:
    yield pen.paint(label, "bold")
    base = min((line.depth for line, _ in pairs), default=0)
    rows = [
        [word(name, language) for name in ("tensor", "named shape", "sizes", "FLOPs", "meaning")]
    ]
    for line, last in pairs:
        row = line.row
        rows.append(
            [
                "  " * (line.depth - base) + line.label,
                "" if line.is_call else row.dims,
                "" if line.is_call else _sizes(row.shape or (), last.row.shape or ()),
                _ends(cost(row), cost(last.row)),
                row.meaning,
            ]
        )
    yield from _grid(rows, pen, right=(3,), width=canvas.width)


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
    without = format_flops(sums["flops_without_cache"])
    note = word("counted from the closed form", language)
    yield from _said("FLOPs without the cache", f"{without} ({note})", pen, canvas, language)
    if sums["flops_saved"] > 0:
        share = 100 * sums["flops_saved"] / sums["flops_without_cache"]
        text = f"{format_flops(sums['flops_saved'])} ({share:.1f}%)"
        yield from _said("saved by the cache", text, pen, canvas, language)
    yield from _said("convention", word(FLOP_CONVENTION, language), pen, canvas, language)


def _said(label: str, text: str, pen: Pen, canvas: Canvas, language: Language) -> Iterator[str]:
    name = word(label, language)
    first, *rest = wrap(f"{name}: {text}", canvas.width)
    yield pen.paint(first[: len(name)], "bold") + first[len(name) :]
    yield from rest


def _grid(
    rows: Sequence[Sequence[str]], pen: Pen, right: Sequence[int], width: int | None = None
) -> Iterator[str]:
    """Rows under a heading; the last column takes what is left of the screen.

    Where that is nothing, the widest columns give way, and their texts take more lines.
    """
    from rich.cells import cell_len  # noqa: PLC0415 - only tables need it

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        widths[-1] = max(
            NARROWEST, min(widths[-1], width - sum(widths[:-1]) - GAP * (len(widths) - 1))
        )
        while sum(widths) + GAP * (len(widths) - 1) > width and max(widths) > NARROWEST:
            widths[widths.index(max(widths))] -= 1
    tracks = [Track(size, right=place in right) for place, size in enumerate(widths)]
    for number, row in enumerate(rows):
        yield from pen.row(tracks, row, "" if number else "bold")
