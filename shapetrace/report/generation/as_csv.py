"""A generation for spreadsheets: one line per pass, numbers unrounded."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.generation.records import Generation
    from shapetrace.report.language.words import Language

PASS_COLUMNS = ("pass", "kind", "n", "m", "flops", "kv_cache_bytes", "seconds")


def render(generation: Generation, _canvas: Canvas, _language: Language = "en") -> str:
    """A heading line and a line per pass; no seconds where nothing had values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PASS_COLUMNS)
    for number, step in enumerate(generation.passes, 1):
        seconds = step.seconds if generation.valued else ""
        writer.writerow(
            (number, step.kind, step.n, step.m, step.flops, step.kv_cache_bytes, seconds)
        )
    return text.getvalue()
