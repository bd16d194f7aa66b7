"""The texts around a table, the same in every format that people read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.report.language.words import word
from shapetrace.units import (
    format_bytes,
    format_count,
    format_flops,
    format_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.dims import Evidence
    from shapetrace.records.trace import Trace
    from shapetrace.report.document import Line, Report
    from shapetrace.report.language.words import Language
    from shapetrace.report.rows import Row

_IN_THE_LINE = (
    "kind",
    "layers",
    "d_model",
    "h",
    "h_kv",
    "d_k",
    "d_ff",
    "vocab_size",
    "positions",
    "norm",
    "norm_position",
    "activation",
    "gated",
    "attention",
)
"""Fields of our configuration that the line shows; the JSON has them all."""

_TEXTS_SHOWN = 8
"""Texts of a batch that are listed."""

_TOKENS_SHOWN = 16
"""Tokens of a text that are listed; a longer text says how many more there are."""


@dataclass(frozen=True, slots=True)
class Sum:
    """One line of the totals: what, how much, its bytes, its share."""

    label: str
    value: str
    nbytes: str = ""
    share: str = ""
    is_part: bool = False


def heading(report: Report) -> list[tuple[str, str]]:
    """What stands above the table: the configuration, and each text as tokens and ids."""
    language = report.language
    lines = []
    config = _configuration(report.trace)
    if config:
        lines.append((word("configuration", language), config))
    if report.trace.environment:
        run = "  ".join(
            f"{name}={word(value, language)}" for name, value in report.trace.environment
        )
        lines.append((word("run", language), run))
    return [*lines, *_texts(report.trace, language)]


def _texts(trace: Trace, language: Language) -> Iterator[tuple[str, str]]:
    """Each text as tokens and ids; those beyond the batch are an encoder-decoder's targets."""
    B = dict(trace.sizes).get("B", len(trace.tokens))
    for label, texts in (("text", trace.tokens[:B]), ("target", trace.tokens[B:])):
        for text in texts[:_TEXTS_SHOWN]:
            tokens = [f"{_quoted(token)}:{number}" for token, number in text[:_TOKENS_SHOWN]]
            yield (
                word(label, language),
                "  ".join(tokens + _more(len(text) - _TOKENS_SHOWN, language)),
            )
        yield from (
            (word(label, language), line) for line in _more(len(texts) - _TEXTS_SHOWN, language)
        )


def _more(left: int, language: Language) -> list[str]:
    return [f"... +{left} {word('more', language)}"] if left > 0 else []


def _configuration(trace: Trace) -> str:
    """The configuration in a line: what gives a Transformer its shapes, if it is one of ours."""
    pairs = dict(trace.config)
    if pairs.keys() >= {"d_model", "h"}:
        pairs = {name: pairs[name] for name in _IN_THE_LINE if name in pairs}
    axes = dict(trace.sizes)
    # An axis that is named like an argument of its size is said once; of another size, apart.
    pairs = {
        name if axes.get(name, value) == value else f"init_{name}": value
        for name, value in pairs.items()
    }
    words = [f"{name}={_plain(value)}" for name, value in {**axes, **pairs}.items()]
    return "  ".join([trace.target, *words]) if words else ""


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(token: str) -> str:
    """A token between quotes, where nothing in it moves the cursor or turns the line around."""
    letters = json.dumps(token, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in letters)


def sizes_text(row: Row) -> str:
    """A shape's sizes: ``2 12 16 64``."""
    return " ".join(map(str, row.shape or ()))


def cost(row: Row) -> str:
    """A row's FLOPs; a trailing ``?`` says that more ran than is counted."""
    if row.kind == "argument":
        return ""
    if row.complete:
        return format_flops(row.flops)
    return f"{format_flops(row.flops)} ?" if row.flops else "?"


def calls_meaning(line: Line) -> str:
    """What a call is: its class; a function's label says it already."""
    return "" if line.label == line.row.name or line.row.kind == "function" else line.row.name


def sums(report: Report) -> list[Sum]:
    """The totals, line by line."""
    return [*_parameter_sums(report), *_run_sums(report)]


def _parameter_sums(report: Report) -> Iterator[Sum]:
    totals, language = report.totals, report.language
    yield Sum(
        word("parameters", language),
        format_count(totals.parameters),
        format_bytes(totals.parameter_bytes),
    )
    sizes_of = dict(totals.parameter_bytes_by_part)
    for part, count in totals.parameters_by_part:
        if count:
            yield Sum(
                word(part, language),
                format_count(count),
                format_bytes(sizes_of[part]),
                share(sizes_of[part], totals.parameter_bytes),
                is_part=True,
            )


def _run_sums(report: Report) -> Iterator[Sum]:
    totals, language = report.totals, report.language
    yield Sum("FLOPs", format_flops(totals.flops))
    for name, flops in totals.flops_by_part:
        if flops:
            part = share(flops, totals.flops)
            yield Sum(word(name, language), format_flops(flops), share=part, is_part=True)
    peak = format_bytes(totals.peak_activation_bytes)
    yield Sum(word("peak activations", language), "", peak)
    if report.trace.wall_time:
        yield Sum(word("wall time", language), format_seconds(report.trace.wall_time))


def share(part: int, whole: int) -> str:
    """A part of a whole in percent: ``31.6%``; empty when the whole is nothing."""
    return f"{100 * part / whole:.1f}%" if whole else ""


_MARKED: dict[Evidence, str] = {
    "guess": "`B?` is a name guessed from the axis's place in the input; `dims` gives others",
    "attribute": "`width~` is an attribute that has the axis's size; no probe could move it",
}
"""What the marks of names say."""


def remarks(report: Report) -> list[tuple[str, str]]:
    """What stands below the totals: what was not counted, the convention, notes."""
    language = report.language
    missing = "  ".join(f"{name} x{times}" for name, times in report.totals.unmodelled)
    lines = [
        (word("not counted", language), missing or word("nothing", language)),
        (word("convention", language), word(report.totals.convention, language)),
    ]
    if any(not row.complete for row in report.rows):
        mark = "? marks a statement of which some operators have no formula"
        lines.append((word("note", language), word(mark, language)))
    found = {evidence for row in report.rows for evidence in row.evidence}
    for evidence, text in _MARKED.items():
        if evidence in found:
            lines.append((word("note", language), word(text, language)))
    return lines + [(word("note", language), word(note, language)) for note in report.trace.notes]


def alarms(report: Report) -> list[tuple[str, str]]:
    """What went wrong: each annotation that did not hold, and the failure."""
    language = report.language
    lines = [(word("mismatch", language), found.text) for found in report.mismatches]
    failure = report.trace.failure
    if failure is not None and failure.statement:
        from shapetrace.explain import explain  # noqa: PLC0415 - only failures pay for it

        lines.append((word("failed", language), explain(report.trace)))
    elif failure is not None:
        place = f" ({failure.file}:{failure.line})" if failure.file else ""
        path = report.trace.scopes[failure.scope].path if report.trace.scopes else ""
        where = f" in {path}" if path else ""
        text = f"{failure.type_name}: {failure.message}{where}{place}"
        lines.append((word("failed", language), text))
    return lines
