"""Each name of a trace's axes with its evidence: what ``--dims explain`` lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from shapetrace.dims import Dim, Evidence

if TYPE_CHECKING:
    from shapetrace.records.trace import Trace

_ORDER: tuple[str, ...] = get_args(Evidence)


def explain_names(trace: Trace) -> str:
    """The names of a trace's axes, strongest evidence first.

    Args:
        trace: A trace; one that was not named has nothing to list.

    Returns:
        One line a name: the name, the size or sizes it had, how many axes have it, the kind
        of evidence and the evidence in words.
    """
    sizes: dict[tuple[str, str], set[int]] = {}
    counts: dict[tuple[str, str], int] = {}
    details: dict[tuple[str, str], str] = {}
    for dim, size in _axes(trace):
        key = dim.name, dim.evidence
        sizes.setdefault(key, set()).add(size)
        counts[key] = counts.get(key, 0) + 1
        details.setdefault(key, dim.detail)
    keys = sorted(counts, key=lambda key: (_ORDER.index(key[1]), key[0]))
    rows = [
        (name, _sizes(sizes[name, kind]), f"x{counts[name, kind]}", kind, details[name, kind])
        for name, kind in keys
    ]
    return _table([("name", "size", "axes", "evidence", ""), *rows]) if rows else ""


def _axes(trace: Trace) -> list[tuple[Dim, int]]:
    found = [(record.dims, record.shape) for record in trace.tensors]
    found += [(parameter.dims, parameter.shape) for parameter in trace.parameters]
    return [
        pair for dims, shape in found if dims is not None for pair in zip(dims, shape, strict=True)
    ]


def _sizes(sizes: set[int], shown: int = 4) -> str:
    listed = sorted(sizes)
    more = ", ..." if len(listed) > shown else ""
    return ", ".join(map(str, listed[:shown])) + more


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "".join(f"{line}\n" for line in lines)
