"""One traced call of any model, from what the user says to a named trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch

from shapetrace.api.preparing.prepare import Prepared, prepare
from shapetrace.api.preparing.probe_names import probed
from shapetrace.api.preparing.request import Request
from shapetrace.api.tracing.mistyped import check_dtypes
from shapetrace.api.tracing.timeout import stopped_after
from shapetrace.capture.backward import BackwardPass
from shapetrace.capture.probing.probe import ProbingInterrupt
from shapetrace.capture.recording import record
from shapetrace.capture.source.discover import Wanted
from shapetrace.naming.name_trace import Probing, named
from shapetrace.records.trace import Trace
from shapetrace.report.traced import Traced


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trace, whole or up to a failure, and the exception that ended it."""

    trace: Traced
    error: BaseException | None = None


def trace_target(
    request: Request,
    progress: Callable[[str], None] = lambda _: None,
    interrupted: Callable[[], None] = lambda: None,
) -> Outcome:
    """Make a model, call it once, and name every axis of what it computes.

    Args:
        request: What is to be traced.
        progress: Is told what is going on.
        interrupted: Is called when Ctrl-C ends the naming, and the real run is to follow; it
            gets as long as the naming had, or a second where not even a weightless run ended.

    Returns:
        The trace. A model that raises, calls `sys.exit` or is interrupted leaves the trace
        up to there, and its exception; Ctrl-C while naming leaves one with fewer names.

    Raises:
        ShapetraceError: For a target, inputs or names that cannot be, before anything runs;
            for an input whose dtype alone made the model fail; or if there is nothing that
            a backward pass could begin from.
    """
    prepared = prepare(request, progress)
    naming = _probed(prepared, progress)
    if naming.interrupt is not None:
        interrupted()
    progress("running one pass")
    with stopped_after(naming.patience):
        trace, error, loss = _run(prepared, naming.wanted)
    if isinstance(error, Exception) and not loss:  # a backward pass is not the input's dtype
        check_dtypes(trace, prepared.model, prepared.inputs, request.device)
    return Outcome(
        Traced.of(_completed(trace, prepared, naming.probing, loss)), error or naming.interrupt
    )


@dataclass(frozen=True, slots=True)
class _Naming:
    """What probes saw; where Ctrl-C ended them, as far as they got, and what the run may take."""

    probing: Probing | None
    wanted: Wanted | None
    interrupt: KeyboardInterrupt | None = None
    patience: float | None = None


def _probed(prepared: Prepared, progress: Callable[[str], None]) -> _Naming:
    started = time.monotonic()
    try:
        probing, wanted = probed(prepared.subject(), progress)
    except ProbingInterrupt as error:
        ends = error.probing.base is not None  # one that has not come to an end may have none
        patience = time.monotonic() - started if ends else 0.0
        return _Naming(error.probing, error.wanted or None, error, patience)
    except KeyboardInterrupt as error:
        return _Naming(None, None, error, 0.0)
    return _Naming(probing, wanted or None)


def _run(prepared: Prepared, wanted: Wanted | None) -> tuple[Trace, BaseException | None, str]:
    """The trace, what ended it, and what a backward pass began from, if one did."""
    request, target, inputs = prepared.request, prepared.target, prepared.inputs
    recording = record(
        prepared.model,
        wanted=wanted,
        target=target.name,
        config=target.config(),
        sizes=prepared.sizes(),
        check=request.check,
    )
    error: BaseException | None = None
    backward = BackwardPass(prepared.model, inputs) if request.backward else None
    with torch.set_grad_enabled(request.train), backward or nullcontext():
        try:
            with recording:
                if backward is None:
                    prepared.model(*inputs.args, **inputs.kwargs)
                else:
                    backward.begin(prepared.model(*inputs.args, **inputs.kwargs))
                    backward.run()
                if request.device == "cuda":
                    torch.cuda.synchronize()
        except (Exception, KeyboardInterrupt, SystemExit) as raised:  # noqa: BLE001 - is reported
            error = raised
    return recording.trace, error, "" if backward is None else backward.note


def _completed(trace: Trace, prepared: Prepared, probing: Probing | None, loss: str) -> Trace:
    request = prepared.request
    notes = "no weights (meta device): sizes and costs only"
    weights = notes if request.device == "meta" else prepared.target.weights
    mode = "training mode" if request.train else "evaluation mode"
    grads = "with gradients" if request.train or request.backward else "no gradients"
    ran = (("device", request.device), ("seed", str(request.seed)))
    trace = replace(
        trace,
        notes=(f"{weights}; {mode}, {grads}", *((loss,) if loss else ()), *trace.notes),
        environment=(*trace.environment, *ran),
    )
    return named(trace, probing, prepared.aliases)
