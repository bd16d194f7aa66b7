"""A trace as people meet it: printed, listed, saved, shown in a notebook."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

from shapetrace.records.storage import save
from shapetrace.records.trace import Trace

if TYPE_CHECKING:
    from os import PathLike

    from shapetrace.report.document import Report
    from shapetrace.report.rows import Level, Row


@dataclass(frozen=True, slots=True, repr=False)
class Traced(Trace):
    """A `Trace` with a face.

    Example:
        >>> import torch, shapetrace
        >>> model, x = torch.nn.Linear(4, 3), torch.ones(2, 5, 4)
        >>> traced = shapetrace.trace(model, x, dims={"B": 2, "n": 5})
        >>> table = str(traced)  # what print(traced) shows
        >>> traced.to_dict()["sizes"]
        {'B': 2, 'n': 5}
    """

    @classmethod
    def of(cls, trace: Trace, **changes: Any) -> Traced:
        """The same trace, with a face.

        Args:
            trace: As recorded, named or loaded.
            changes: Fields that only the caller knows: where it ran, on which tokens.
        """
        return cls(**{field.name: getattr(trace, field.name) for field in fields(Trace)} | changes)

    def rows(self, level: Level = "tensors") -> tuple[Row, ...]:
        """Every row of the table, in the order of the run, equal layers not folded.

        Args:
            level: What a row is: ``tensors``, ``modules`` or ``ops``.
        """
        return self._report(level).rows

    def to_dict(self, level: Level = "tensors") -> dict[str, Any]:
        """What ``--format json`` writes, as Python values.

        Args:
            level: As for `rows`.
        """
        found: dict[str, Any] = json.loads(self._rendered("json", level))
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace, whole or not at all; `shapetrace.load` reads it.

        Args:
            path: The file; an existing one is replaced.

        Raises:
            ShapetraceError: If it cannot be written.
        """
        save(self, path)

    def explain(self) -> str:
        """Why the run failed: the statement, its operands, the sizes that clash; else empty."""
        from shapetrace.explain import explain  # noqa: PLC0415 - only failures need it

        return explain(self)

    def __str__(self) -> str:
        """The table for people."""
        return self._rendered("table", "tensors", folded=True)

    def __repr__(self) -> str:
        counts = f"{len(self.scopes)} calls, {len(self.tensors)} tensors, {len(self.ops)} operators"
        failed = f", failed with {self.failure.type_name}" if self.failure else ""
        return f"<Trace of {self.target}: {counts}{failed}>"

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return f'<pre style="line-height: 1.2">{escape(str(self))}</pre>'

    def _report(self, level: Level, *, folded: bool = False) -> Report:
        from shapetrace.report.document import build_report  # noqa: PLC0415 - kept off the light path

        return build_report(self, level, "en", folded=folded)

    def _rendered(self, format_name: str, level: Level, *, folded: bool = False) -> str:
        from shapetrace.report import REPORTERS, Canvas, choose_format  # noqa: PLC0415 - Rich is slow

        reporter = choose_format(format_name, None, REPORTERS)
        return reporter.render(self._report(level, folded=folded), Canvas())
