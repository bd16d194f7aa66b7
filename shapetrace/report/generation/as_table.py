"""A generation for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.report.generation.parts import generation_sums, passes, shapes
from shapetrace.report.generation.tensors import tensors_by_run
from shapetrace.report.layout.grid import Pen
from shapetrace.report.layout.small import small_table

if TYPE_CHECKING:
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.generation.records import Generation
    from shapetrace.report.language.words import Language


def render(generation: Generation, canvas: Canvas, language: Language = "en") -> str:
    """The passes, folded, with their shapes; then the totals."""
    pen = Pen(canvas.color)
    lines = [*small_table(passes(generation, language), pen, canvas.width), ""]
    for group in tensors_by_run(generation, language):
        title, rows = shapes(group, language)
        lines += [pen.paint(title, "bold"), *small_table(rows, pen, canvas.width), ""]
    for label, text in generation_sums(generation, language):
        lines += pen.labelled(label, text, "bold", canvas.width)
    return "".join(f"{line}\n" for line in lines)
