"""JSON, for programs: every record, every number unrounded."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

from shapetrace.report.document import counted_rows
from shapetrace.report.training import training_json

if TYPE_CHECKING:
    from shapetrace.check import Mismatch
    from shapetrace.cost import Summary
    from shapetrace.records.trace import Trace
    from shapetrace.report.document import Report
    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.rows import Row

REPORT_FORMAT_VERSION = 1
"""Raised when a key changes its meaning or goes; new keys may come without."""


def render(report: Report, _canvas: Canvas) -> str:
    """The report as one JSON object, a row per line."""
    head = {
        "format_version": REPORT_FORMAT_VERSION,
        "target": report.trace.target,
        "level": report.level,
        "config": dict(report.trace.config),
        "sizes": dict(report.trace.sizes),
        "tokens": [[list(pair) for pair in text] for text in report.trace.tokens],
        "totals": _totals(report.totals, report.trace),
        "training": training_json(report.trace),
        "mismatches": [_mismatch(found, report.trace) for found in report.mismatches],
        "failure": _failure(report.trace),
        "notes": list(report.trace.notes),
        "environment": dict(report.trace.environment),
    }
    body = [_dump(_row(row, times)) for row, times in counted_rows(report)]
    rows = "[\n    " + ",\n    ".join(body) + "\n  ]" if body else "[]"
    fields = [f"  {_dump(key)}: {_dump(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join([*fields, f'  "rows": {rows}']) + "\n}\n"


def _dump(value: object) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    """The value with null for what JSON has no number for: a loss that is NaN, say."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def _row(row: Row, times: int) -> dict[str, Any]:
    return {
        "path": row.path,
        "name": row.name,
        "kind": row.kind,
        "dims": row.dims,
        "evidence": list(row.evidence),
        "shape": None if row.shape is None else list(row.shape),
        "dtype": row.dtype,
        "bytes": row.bytes,
        "flops": row.flops,
        "flops_complete": row.complete,
        "meaning": row.meaning,
        "file": row.file,
        "line": row.line,
        "repeats": times,
    }


def _totals(totals: Summary, trace: Trace) -> dict[str, Any]:
    return {
        "parameters": totals.parameters,
        "parameter_bytes": totals.parameter_bytes,
        "trainable_parameters": totals.trainable_parameters,
        "buffer_bytes": totals.buffer_bytes,
        "parameters_by_part": dict(totals.parameters_by_part),
        "parameter_bytes_by_part": dict(totals.parameter_bytes_by_part),
        "flops": totals.flops,
        "flops_forward": totals.flops_forward,
        "flops_backward": totals.flops_backward,
        "flops_by_part": dict(totals.flops_by_part),
        "peak_activation_bytes": totals.peak_activation_bytes,
        "wall_time_s": trace.wall_time,
        "unmodelled": dict(totals.unmodelled),
        "convention": totals.convention,
    }


def _mismatch(found: Mismatch, trace: Trace) -> dict[str, Any]:
    site = trace.sites[trace.tensors[found.tensor].site]
    return {
        "kind": found.kind,
        "path": found.path,
        "name": site.name + trace.tensors[found.tensor].element,
        "observed": found.observed,
        "annotated": found.annotated,
        "reasons": list(found.reasons),
        "fix": found.fix,
        "file": found.file,
        "line": found.line,
        "calls": found.calls,
        "text": found.text,
    }


def _failure(trace: Trace) -> dict[str, Any] | None:
    failure = trace.failure
    if failure is None:
        return None
    found = {
        "type": failure.type_name,
        "message": failure.message,
        "file": failure.file,
        "line": failure.line,
    }
    if not failure.statement:
        return found
    from shapetrace.explain import explain  # noqa: PLC0415 - only failures pay for it

    return found | {"explanation": explain(trace)}
