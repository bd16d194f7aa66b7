"""A backward pass in a report: gradients beside parameters, memory by kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shapetrace.cost.memory import tied_to
from shapetrace.report.language.words import word
from shapetrace.report.layout.small import SmallTable
from shapetrace.units import format_bytes, format_flops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.cost.memory import Peak
    from shapetrace.cost.training import Training
    from shapetrace.records.trace import ParameterRecord, Trace
    from shapetrace.report.document import Report
    from shapetrace.report.language.words import Language

_SHOWN = 3
"""Blocks of memory that are named for each layer; the JSON has them all."""


def training_tables(report: Report) -> Iterator[SmallTable]:
    """What a backward pass adds to a report; nothing where none ran."""
    training = _training(report.trace)
    if training is None:
        return
    yield _gradients(report.trace, report.language)
    yield _saved(training, report)
    yield _kinds(report, training)


def _training(trace: Trace) -> Training | None:
    if all(op.phase == "forward" for op in trace.ops):
        return None  # most traces: the import takes a while
    from shapetrace.cost.training import training_of  # noqa: PLC0415 - few need it

    return training_of(trace)


def _gradients(trace: Trace, language: Language) -> SmallTable:
    heading = ("parameter", "shape", "gradient", "bytes")
    rows = [tuple(word(name, language) for name in heading)]
    for label, record in _folded(trace, language):
        shape = " ".join(map(str, record.shape))
        known = shape if record.gradient is not None else "-"
        rows.append((label, shape, known, format_bytes(record.nbytes)))
    return SmallTable(tuple(rows), (3,))


def _folded(trace: Trace, language: Language) -> list[tuple[str, ParameterRecord]]:
    """Parameters of equal layers once, with how many there are; later names of tied ones marked."""
    found: dict[tuple[object, ...], list[ParameterRecord]] = {}
    tied = tied_to(trace)
    for record in trace.parameters:
        if record.buffer:
            continue
        pattern = re.sub(r"\.\d+\.", ".#.", record.path)
        key = (pattern, record.shape, record.gradient is None, record.path in tied)
        found.setdefault(key, []).append(record)
    labels = []
    for group in found.values():
        label = group[0].path + (f" ... x{len(group)}" if len(group) > 1 else "")
        if (first := tied.get(group[0].path)) is not None:
            label += f" ({word('tied to', language)} {first})"
        labels.append((label, group[0]))
    return labels


def _saved(training: Training, report: Report) -> SmallTable:
    language = report.language
    heading = ("kept for the backward pass", "bytes", "largest")
    rows = [tuple(word(name, language) for name in heading)]
    groups: list[tuple[str, int, str, int]] = []
    for layer in training.saved:
        largest = ", ".join(
            f"{saved.label} {format_bytes(saved.nbytes)}" for saved in layer.blocks[:_SHOWN]
        )
        pattern = re.sub(r"\d+", "#", layer.path)
        if groups and groups[-1][1:3] == (layer.nbytes, largest) and _same(groups[-1][0], pattern):
            groups[-1] = (*groups[-1][:3], groups[-1][3] + 1)
        else:
            groups.append((layer.path or report.trace.target or "()", layer.nbytes, largest, 1))
    for path, nbytes, largest, times in groups:
        label = path + (f" ... x{times}" if times > 1 else "")
        rows.append((label, format_bytes(nbytes), largest))
    rows.append((word("total", language), format_bytes(training.saved_bytes), ""))
    return SmallTable(tuple(rows), (1,))


def _same(path: str, pattern: str) -> bool:
    return re.sub(r"\d+", "#", path) == pattern


def _kinds(report: Report, training: Training) -> SmallTable:
    language, totals = report.language, report.totals
    peaks = [(word("peak beyond the parameters", language), _told(report, training.peak))]
    if training.first_peak.nbytes != training.peak.nbytes:
        label = word("the same before there is a state", language)
        peaks.append((label, _told(report, training.first_peak)))
    rows = [
        (word("memory and work", language), ""),
        (word("parameters", language), format_bytes(training.parameter_bytes)),
        (word("gradients", language), _seen(training.gradient_bytes, language)),
        (word("optimizer state", language), _seen(training.state_bytes, language)),
        (word("kept for the backward pass", language), format_bytes(training.saved_bytes)),
        *peaks,
        (word("FLOPs forward", language), format_flops(totals.flops_forward)),
        (word("FLOPs backward", language), format_flops(totals.flops_backward)),
    ]
    return SmallTable(tuple(rows))


def _seen(nbytes: int, language: Language) -> str:
    """Bytes, or that there were none to see: an optimizer may keep them where nobody looks."""
    return format_bytes(nbytes) if nbytes else word("none seen", language)


def _told(report: Report, peak: Peak) -> str:
    where = report.trace.scopes[peak.scope].path if peak.scope is not None else ""
    return format_bytes(peak.nbytes) + (f" ({where})" if where else "")


def training_json(trace: Trace) -> dict[str, Any] | None:
    """The same for programs; None where no backward pass ran."""
    training = _training(trace)
    if training is None:
        return None
    tied = tied_to(trace)
    return {
        "parameter_bytes": training.parameter_bytes,
        "gradient_bytes": training.gradient_bytes,
        "optimizer_state_bytes": training.state_bytes,
        "saved_for_backward_bytes": training.saved_bytes,
        "peak_bytes_beyond_parameters": training.peak.nbytes,
        "first_step_peak_bytes_beyond_parameters": training.first_peak.nbytes,
        "saved_for_backward": [
            {
                "path": layer.path,
                "bytes": layer.nbytes,
                "storages": [
                    {
                        "path": saved.path,
                        "name": saved.name,
                        "operator": saved.operator,
                        "bytes": saved.nbytes,
                    }
                    for saved in layer.blocks
                ],
            }
            for layer in training.saved
        ],
        "parameters": [
            {
                "path": record.path,
                "shape": list(record.shape),
                "gradient_shape": None if record.gradient is None else list(record.shape),
                "bytes": record.nbytes,
                "tied_to": tied.get(record.path),
            }
            for record in trace.parameters
            if not record.buffer
        ],
    }
