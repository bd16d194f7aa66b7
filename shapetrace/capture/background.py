"""Watch a long session: many runs one after the other, with the code swapped only once."""

from __future__ import annotations

from dataclasses import replace
from types import FunctionType

from shapetrace.capture.declared.enforcement import annotated_functions
from shapetrace.capture.declared.namespaces import by_file
from shapetrace.capture.declared.verdicts import declare
from shapetrace.capture.recorder.assemble import Tables, assemble
from shapetrace.capture.recorder.hooks import activate
from shapetrace.capture.recorder.recorder import Recorder
from shapetrace.capture.recorder.swap import BACKGROUND, Swap, swap
from shapetrace.capture.source.discover import Wanted
from shapetrace.records.signature import Signature
from shapetrace.records.trace import Trace


class Session:
    """Records runs between `begin` and `end`; gives way to any other recording.

    A run that was cut short by another recording ends there; the next one is whole again.
    """

    def __init__(self) -> None:
        self._swap = Swap()
        self._wanted: Wanted = {}
        self._functions: dict[str, list[FunctionType]] = {}
        self._called: set[int] = set()
        self._recorder: Recorder | None = None

    def begin(self, wanted: Wanted) -> None:
        """Start to record a run.

        Args:
            wanted: The functions to look into.

        Raises:
            ShapetraceError: Another recording is running in this process.
        """
        if not self._swap.active or set(wanted) != set(self._wanted):
            self.stop()
            self._swap, self._wanted = swap(wanted), wanted
            self._functions = by_file(function for function, _ in self._swap.functions)
            BACKGROUND.append(self.stop)
        self._recorder = Recorder({}, operators=False)
        activate(self._recorder)

    def end(self, name: str) -> Trace | None:
        """What was recorded since `begin`; None when nothing annotated ran.

        Args:
            name: What the run is called.
        """
        recorder = self._recorder
        if recorder is None:
            return None
        if self._swap.active:  # else another recording has taken over, and its taps stay
            activate(None)
        recorder.close()
        self._recorder = None
        tables = _annotated(assemble(recorder.events, recorder.storages.blocks, [], name))
        self._called |= {number for number in tables.functions if number >= 0}
        if not tables.tensors:
            return None
        declare(tables, self._functions)
        return Trace(
            name,
            sites=tuple(tables.sites),
            scopes=tuple(tables.scopes),
            tensors=tuple(tables.tensors),
        )

    def stop(self) -> None:
        """Give every function its own code back."""
        if self.stop in BACKGROUND:
            BACKGROUND.remove(self.stop)
        if self._swap.active:
            activate(None)
            self._swap.undo()

    def signatures(self) -> tuple[Signature, ...]:
        """The functions that ran with jaxtyping annotations, and whether they check them."""
        return annotated_functions(self._called, self._functions)


def _annotated(tables: Tables) -> Tables:
    """The tables with only the values that have an annotation: the rest is nobody's business."""
    kept = [record for record in tables.tensors if tables.bindings[record.site].annotation]
    tables.tensors = [replace(record, storage=None) for record in kept]
    return tables
