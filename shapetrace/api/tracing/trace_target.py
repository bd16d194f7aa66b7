"""One traced call of any model, from what the user says to a named trace."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shapetrace.api.tracing.mistyped import check_dtypes
from shapetrace.api.tracing.timeout import stopped_after
from shapetrace.errors import ShapetraceError
from shapetrace.report.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from shapetrace.capture.source.discover import Wanted
    from shapetrace.capture.target.inputs import CallInputs
    from shapetrace.capture.target.target import Target
    from shapetrace.naming.name_trace import Probing
    from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be traced.

    Attributes:
        target: ``package.module:Class``, ``package.module:factory``, ``path/to/file.py:thing``.
        inputs: Input specs.
        inputs_file: Instead of specs, ``file.py:make_inputs``, a ``.pt`` or ``.safetensors``.
        arguments: ``key=value`` arguments of the constructor or factory.
        hf_config: A ``config.json`` or ``key=value`` fields, for a Hugging Face class.
        aliases: ``name=other`` names for dimensions.
        device: ``cpu``, ``cuda`` or ``meta``.
        seed: Of random weights and inputs.
        train: Run in training mode and with gradients.
        check: Whether declared annotations are checked.
    """

    target: str
    inputs: Sequence[str] = ()
    inputs_file: str | None = None
    arguments: Sequence[str] = ()
    hf_config: Sequence[str] = ()
    aliases: Sequence[str] = ()
    device: str = "cpu"
    seed: int = 0
    train: bool = False
    check: bool = True


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
            gets as long as the naming had.

    Returns:
        The trace. A model that raises, calls `sys.exit` or is interrupted leaves the trace
        up to there, and its exception; Ctrl-C while naming leaves one with fewer names.

    Raises:
        ShapetraceError: For a target, inputs or names that cannot be, before anything runs;
            or for an input whose dtype alone made the model fail.
    """
    from shapetrace.api.transformer.building import check_device  # noqa: PLC0415 - needs torch
    from shapetrace.capture.target.inputs import check_signature  # noqa: PLC0415
    from shapetrace.capture.target.target import resolve  # noqa: PLC0415
    from shapetrace.capture.values.members import set_training  # noqa: PLC0415

    aliases = read_aliases(request.aliases)
    check_device(request.device)
    target = resolve(request.target, request.arguments, request.hf_config)
    inputs = read_inputs(request)
    progress(f"making {target.name}")
    model = target.build(device=request.device, seed=request.seed)
    set_training(model, mode=request.train)
    check_signature(model, inputs)
    naming = _probed(target, inputs, progress)
    if naming.interrupt is not None:
        interrupted()
    progress("running one pass")
    with stopped_after(naming.patience):
        trace, error = _run(request, target, model, inputs, naming.wanted)
    if isinstance(error, Exception):
        check_dtypes(trace, model, inputs, request.device)
    named = Traced.of(_completed(trace, request, naming.probing, aliases))
    return Outcome(named, error or naming.interrupt)


def read_aliases(texts: Sequence[str]) -> dict[str, str]:
    """The names to use in place of others.

    Raises:
        ShapetraceError: For a text that is no pair of names.
    """
    found = {}
    for text in texts:
        name, equals, other = (part.strip() for part in text.partition("="))
        if not equals or not name or not other.isidentifier():
            raise ShapetraceError(
                f"--alias {text!r} is not of the form name=other, such as hidden_size=d_model"
            )
        found[name] = other
    return found


def read_inputs(request: Request) -> CallInputs:
    """What the model is called with.

    Raises:
        ShapetraceError: For specs or a file that cannot be read, or both at once.
    """
    from shapetrace.capture.target.inputs import from_file, from_specs  # noqa: PLC0415
    from shapetrace.dims.specs import parse_specs  # noqa: PLC0415

    if request.inputs_file is None:
        specs = parse_specs(request.inputs)
        return from_specs(specs, device=request.device, seed=request.seed)
    if request.inputs:
        raise ShapetraceError("give --input specs or an --inputs file, not both")
    return from_file(request.inputs_file, device=request.device)


class _Naming:
    """What probes saw; where Ctrl-C ended them, as far as they got, and how long that took."""

    def __init__(
        self,
        probing: Probing | None,
        wanted: Wanted | None,
        interrupt: KeyboardInterrupt | None = None,
        patience: float | None = None,
    ) -> None:
        self.probing = probing
        self.wanted = wanted
        self.interrupt = interrupt
        self.patience = patience


def _probed(target: Target, inputs: CallInputs, progress: Callable[[str], None]) -> _Naming:
    from shapetrace.api.tracing.probe_names import probed  # noqa: PLC0415
    from shapetrace.capture.probing.probe import ProbingInterrupt  # noqa: PLC0415

    started = time.monotonic()
    try:
        subject = target.subject(inputs)
        probing, wanted = probed(subject, lambda name: progress(f"naming: {name} at another size"))
    except ProbingInterrupt as error:
        return _Naming(error.probing, error.wanted or None, error, time.monotonic() - started)
    except KeyboardInterrupt as error:
        return _Naming(None, None, error, time.monotonic() - started)
    return _Naming(probing, wanted or None)


def _run(
    request: Request, target: Target, model: nn.Module, inputs: CallInputs, wanted: Wanted | None
) -> tuple[Trace, BaseException | None]:
    import torch  # noqa: PLC0415

    from shapetrace.capture.recording import record  # noqa: PLC0415

    sizes = dict(inputs.specs.sizes) if inputs.specs is not None else {}
    recording = record(
        model,
        wanted=wanted,
        target=target.name,
        config=target.config(),
        sizes=sizes,
        check=request.check,
    )
    error: BaseException | None = None
    try:
        with torch.set_grad_enabled(request.train), recording:
            model(*inputs.args, **inputs.kwargs)
            if request.device == "cuda":
                torch.cuda.synchronize()
    except (Exception, KeyboardInterrupt, SystemExit) as raised:  # noqa: BLE001 - it is reported
        error = raised
    return recording.trace, error


def _completed(
    trace: Trace, request: Request, probing: Probing | None, aliases: dict[str, str]
) -> Trace:
    from shapetrace.naming.name_trace import named  # noqa: PLC0415

    notes = "no weights (meta device): sizes and costs only"
    weights = notes if request.device == "meta" else "random weights"
    mode = "training mode, with gradients" if request.train else "evaluation mode, no gradients"
    ran = (("device", request.device), ("seed", str(request.seed)))
    trace = replace(
        trace,
        notes=(f"{weights}; {mode}", *trace.notes),
        environment=(*trace.environment, *ran),
    )
    return named(trace, probing, aliases)
