"""What `shapetrace check` shows: findings for people, for programs, for a pull request.

JSON is one object, whose keys keep their meaning while ``format_version`` is 1::

    {"format_version": 1,
     "targets": [{"target": "net.py:Net",
                  "runs": [{"B": 2, "n": 16}, {"B": 3, "n": 17}],  # then only what changed
                  "annotations": 12,  # annotated places that a run came through
                  "values": 48,       # values that were compared with one
                  "silenced": 0,      # findings that a comment silences
                  "notes": ["..."],   # what could not be done
                  "unchecked": ["..."],  # annotations that no run came to, and why
                  "error": null}],    # how the model failed: "ValueError: ..."
     "findings": [{"target", "code": "ST101", "rule": "size", "kind": "size",
                   "file", "line", "function": "Block.forward", "name": "x", "path": "blocks.0",
                   "message": "on one line", "reasons": ["..."], "observed": "f32[2, 5]",
                   "annotated": "B n", "fix": "...", "calls": 1, "with": {"n": 17}}]}

``with`` names what was changed for the first run that shows the finding; it is empty for the
run as asked. New keys may come without a new version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapetrace.check.findings import Finding, NamedSizes

FINDINGS_FORMAT_VERSION = 1
_MOST_UNCHECKED = 10


@dataclass(frozen=True, slots=True)
class TargetFindings:
    """What checking one target came to.

    Attributes:
        target: What was checked.
        findings: What is wrong.
        runs: The sizes of each run: all of the first, and what was changed in the others.
        annotations: Annotated places that a run came through.
        values: Values that were compared with one.
        silenced: How many findings a comment silences.
        notes: What could not be done.
        error: How the model failed; empty when it did not.
        unchecked: Functions with annotations that nothing was compared with, and why.
    """

    target: str
    findings: tuple[Finding, ...]
    runs: tuple[NamedSizes, ...]
    annotations: int
    values: int
    silenced: int = 0
    notes: tuple[str, ...] = ()
    error: str = ""
    unchecked: tuple[str, ...] = ()


def render_findings(results: Sequence[TargetFindings], form: str) -> str:
    """All findings as ``full`` or ``concise`` text, ``json`` or ``github``; lines end with a newline."""
    match form:
        case "json":
            return _json(results)
        case "github":
            return "".join(f"{_workflow(one)}\n" for one in _findings(results))
        case "concise":
            return "".join(f"{_concise(one)}\n" for one in _findings(results))
    return "".join(f"{one.text}\n\n" for one in _findings(results))


def findings_summary(results: Sequence[TargetFindings]) -> str:
    """How much was checked, a line per target; for stderr."""
    return "".join(f"{line}\n" for result in results for line in _summed_up(result))


def _summed_up(result: TargetFindings) -> Iterator[str]:
    for note in result.notes:
        yield f"note: {result.target}: {note}"
    for line in result.unchecked[:_MOST_UNCHECKED]:
        yield f"not checked: {line}"
    if len(result.unchecked) > _MOST_UNCHECKED:
        more = len(result.unchecked) - _MOST_UNCHECKED
        yield f"not checked: {counted(more, 'function')} more (--format json lists them)"
    if not result.annotations:
        yield (
            f"{result.target}: no annotation was met in {counted(len(result.runs), 'run')}; "
            "`shapetrace annotate` writes them"
        )
        return
    silenced = f", {result.silenced} silenced" if result.silenced else ""
    yield (
        f"{result.target}: {counted(len(result.findings), 'finding')}{silenced}; "
        f"{counted(result.annotations, 'annotation')} checked in {counted(len(result.runs), 'run')}"
    )


def counted(count: int, what: str) -> str:
    """``1 finding``, ``2 findings``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _findings(results: Sequence[TargetFindings]) -> list[Finding]:
    """Each finding once: two targets may share a module."""
    known: dict[tuple[object, ...], Finding] = {}
    for result in results:
        for one in result.findings:
            known.setdefault((one.file, one.line, one.code, one.name, one.reasons), one)
    return list(known.values())


def _concise(one: Finding) -> str:
    return f"{_relative(one.file)}:{one.line}: {one.code} {one.message}"


def _workflow(one: Finding) -> str:
    """A workflow command that GitHub shows beside the line.

    Source: docs.github.com, "Workflow commands for GitHub Actions", `::error`.
    """
    place = f"file={_property(_relative(one.file))},line={one.line}"
    title = _property(f"shapetrace {one.code} ({one.rule})")
    seen = f'observed {one.observed}   annotated "{one.annotated}"\n' if one.observed else ""
    body = "\n".join(one.reasons) + f"\n{seen}fix: {one.fix}"
    return f"::error {place},title={title}::{_data(body)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _relative(file: str) -> str:
    """The path from the current folder, where the file lies below it."""
    try:
        return Path(file).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return file.replace(os.sep, "/")


def _json(results: Sequence[TargetFindings]) -> str:
    document = {
        "format_version": FINDINGS_FORMAT_VERSION,
        "targets": [_target(result) for result in results],
        "findings": [_finding(one, result) for result in results for one in result.findings],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _target(result: TargetFindings) -> dict[str, Any]:
    return {
        "target": result.target,
        "runs": [dict(sizes) for sizes in result.runs],
        "annotations": result.annotations,
        "values": result.values,
        "silenced": result.silenced,
        "notes": list(result.notes),
        "unchecked": list(result.unchecked),
        "error": result.error or None,
    }


def _finding(one: Finding, result: TargetFindings) -> dict[str, Any]:
    return {
        "target": result.target,
        "code": one.code,
        "rule": one.rule,
        "kind": one.kind,
        "file": one.file,
        "line": one.line,
        "function": one.function,
        "name": one.name,
        "path": one.path,
        "message": one.message,
        "reasons": list(one.reasons),
        "observed": one.observed,
        "annotated": one.annotated,
        "fix": one.fix,
        "calls": one.calls,
        "with": dict(one.sizes),
    }
