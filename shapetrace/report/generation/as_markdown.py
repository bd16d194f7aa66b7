"""A generation for documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.report.formats.as_markdown import listing, safe, small
from shapetrace.report.generation.parts import generation_sums, passes, shapes
from shapetrace.report.generation.tensors import tensors_by_run

if TYPE_CHECKING:
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.generation.records import Generation
    from shapetrace.report.language.words import Language


def render(generation: Generation, _canvas: Canvas, language: Language = "en") -> str:
    """The texts, the passes with their shapes, and the totals, as GitHub-flavoured Markdown."""
    blocks = [
        listing([(sample.prompt, sample.text) for sample in generation.samples]),
        small(passes(generation, language)),
    ]
    for group in tensors_by_run(generation, language):
        title, rows = shapes(group, language)
        blocks += [f"**{safe(title)}**", small(rows)]
    blocks.append(listing(list(generation_sums(generation, language))))
    return "\n\n".join(blocks) + "\n"
