"""A generation for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shapetrace.report.generation.records import totals
from shapetrace.report.generation.tensors import tensors_by_run

if TYPE_CHECKING:
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.generation.records import Generation, Sample
    from shapetrace.report.language.words import Language

GENERATION_FORMAT_VERSION = 1


def render(generation: Generation, _canvas: Canvas, _language: Language) -> str:
    """The generation as one JSON object."""
    body = {
        "format_version": GENERATION_FORMAT_VERSION,
        "target": generation.name,
        "config": dict(generation.config),
        "samples": [
            {"prompt": sample.prompt, **_made(sample, valued=generation.valued)}
            for sample in generation.samples
        ],
        "steps": [
            {
                "kind": step.kind,
                "n": step.n,
                "m": step.m,
                "flops": step.flops,
                "kv_cache_bytes": step.kv_cache_bytes,
                "seconds": step.seconds if generation.valued else None,
            }
            for step in generation.passes
        ],
        "totals": totals(generation),
        "tensors": _tensors(generation),
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _made(sample: Sample, *, valued: bool) -> dict[str, Any]:
    """What was made; null where nobody can know it."""
    if not valued:
        return {"text": None, "token_ids": None}
    return {"text": sample.text, "token_ids": list(sample.token_ids)}


def _tensors(generation: Generation) -> list[dict[str, Any]]:
    """The named tensors of the prefill and of the first and last step of each run."""
    return [
        {
            "pass": group.run.label(),
            "path": line.row.path,
            "name": line.row.name,
            "dims": line.row.dims,
            "shape": list(line.row.shape or ()),
            "last_shape": list(last.row.shape or ()),
            "dtype": line.row.dtype,
            "flops": line.row.flops,
            "repeats": line.times,
        }
        for group in tensors_by_run(generation, "en")
        for line, last in group.lines
        if not line.is_call
    ]
