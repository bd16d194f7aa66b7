"""What names rest on when a live model is traced in Python, and whether they hold elsewhere.

    python -m tests.covered.shares [name...]

Each covered model is made, then handed to `shapetrace.trace` with its inputs and no names:
all that is known of it is what it carries. Printed are the shares of axes by kind of
evidence, and how many axes with evidence were not what their name says at sizes that no
probe has tried (what must be none).
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from _pytest.outcomes import Skipped
from torch import nn

from shapetrace.api.preparing.probe_names import probed
from shapetrace.capture import record
from shapetrace.capture.probing.probe_runs import ProbeRuns
from shapetrace.capture.recorder.swap import swap
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.instances import subject_of
from shapetrace.dims import Dim, evaluate
from shapetrace.naming.name_trace import Observation, keyed, named
from shapetrace.records.trace import Trace
from tests.covered.odd_cases import ODD
from tests.covered.package_cases import PACKAGES
from tests.covered.packages import needs
from tests.covered.study import EVIDENCE, Case, kind_of, made
from tests.covered.transformer_cases import FAMILIES

KINDS = ("evidence", "attribute", "guess", "none")


def kind(dim: Dim) -> str:
    """Evidence of any sort, an attribute, a guess, or none."""
    found = kind_of(dim)
    if found in EVIDENCE:
        return "evidence"
    return found if found in KINDS else "none"


def axes(trace: Trace) -> Iterator[Dim]:
    """Every named axis of a trace."""
    for record_ in trace.tensors:
        yield from record_.dims or ()


class Live:
    """A live model, traced with what it carries."""

    def __init__(self, model: nn.Module, inputs: CallInputs, dims: Any = None) -> None:
        start = time.process_time()
        self.subject = subject_of(model, inputs, dims)
        self.probing, wanted = probed(self.subject)
        with torch.no_grad(), record(model, wanted=wanted) as recording:
            model(*inputs.args, **inputs.kwargs)
        self.trace = named(recording.trace, self.probing)
        self.seconds = time.process_time() - start

    def shares(self) -> Counter[str]:
        """How many axes have each kind of evidence."""
        return Counter(kind(dim) for dim in axes(self.trace))

    def falsehoods(self) -> Iterator[tuple[str, str, int, Any]]:
        """Axes with evidence that are something else at sizes that were never probed."""
        runs = ProbeRuns(self.subject)
        if not runs.enter():
            return
        swapped = swap(runs.wanted)
        try:
            for changes in self._unseen(runs):
                seen = runs.observe(changes)
                if seen is not None:
                    yield from self._wrong(seen, changes)
        finally:
            swapped.undo()

    def _unseen(self, runs: ProbeRuns) -> Iterator[dict[str, int]]:
        names = [n for n in runs.sizes if n not in self.subject.loose and runs.sizes[n] > 0]
        for name in names:
            size = runs.sizes[name]
            for other in (5 * size, size + 3, 7 * size + 1, size - 1, size // 3):
                if other > 1 and other != size:  # what is 1 broadcasts, what is 0 is off
                    yield {name: other}
        yield {name: 6 * runs.sizes[name] for name in self.subject.dims}

    def _wrong(
        self, seen: Observation, changes: dict[str, int]
    ) -> Iterator[tuple[str, str, int, Any]]:
        for key, record_ in keyed(self.trace.scopes, self.trace.sites, self.trace.tensors):
            shape = seen.shapes.get(key, ())
            if record_.dims is None or len(shape) != len(record_.shape):
                continue
            for dim, size in zip(record_.dims, shape, strict=True):
                text = (
                    dim.name if "kept as" not in dim.detail else dim.detail.partition(", kept")[0]
                )
                if kind(dim) in ("evidence", "guess") and self._value(text, seen) != size:
                    yield f"{key[0]} {key[3]}", dim.name, size, changes

    def _value(self, text: str, seen: Observation) -> Any:
        try:
            return evaluate(text, seen.sizes)
        except Exception as error:  # noqa: BLE001 - it is shown
            return error


def live(case: Case) -> Live:
    """A case's model, traced as it is."""
    needs(case.package)
    build, inputs, _ = made(case)
    return Live(build(), CallInputs(inputs.args, inputs.kwargs))


def main(names: list[str]) -> None:
    """Print the table, of all cases or of some."""
    total: Counter[str] = Counter()
    print(f"{'model':28}" + "".join(f"{one:>10}" for one in KINDS) + "   CPU s  false")
    for case in (*FAMILIES, *PACKAGES, *ODD):
        if names and case.name not in names:
            continue
        try:
            with warnings.catch_warnings(), contextlib.redirect_stderr(sys.stdout):
                warnings.simplefilter("ignore")
                found = live(case)
                wrong = list(found.falsehoods())
        except Skipped as reason:
            print(f"{case.name:28} {reason}")
            continue
        shares = found.shares()
        total.update(shares)
        print(_line(case.name, shares) + f"{found.seconds:8.2f} {len(wrong):6}", flush=True)
        for place in wrong[::9] if names else ():
            print("   ", *place)
    print(_line("all axes", total))


def _line(name: str, shares: Counter[str]) -> str:
    axes_ = max(1, sum(shares.values()))
    return f"{name:28}" + "".join(f"{shares[one] / axes_:10.1%}" for one in KINDS)


if __name__ == "__main__":
    main(sys.argv[1:])
