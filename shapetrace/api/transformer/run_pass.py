"""From a configuration and ids to a trace: the pass itself, which needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from shapetrace.api.transformer.backward import traced_backward
from shapetrace.api.transformer.building import (
    build_model,
    check_device,
    input_sizes,
    model_arguments,
    torch_dtype,
)
from shapetrace.api.transformer.choices import plainly
from shapetrace.api.transformer.memory import (
    ITEM_BYTES,
    activation_bytes,
    check_countable,
    check_fits,
    kept_bytes,
)
from shapetrace.capture.recording import record
from shapetrace.errors import ShapetraceError
from shapetrace.model import build
from shapetrace.report.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from shapetrace.api.transformer.inputs import Inputs
    from shapetrace.api.transformer.requests import PassRequest
    from shapetrace.model.transformer import Transformer
    from shapetrace.records.trace import Trace


def run_pass(request: PassRequest, inputs: Inputs, progress: Callable[[str], None]) -> Traced:
    """Build the model, run one pass, and return its trace.

    Raises:
        ShapetraceError: When the device is not there, the memory does not suffice, or the
            weights are missing or do not fit.
    """
    check_device(request.device)
    rectangles = [ids for ids in (inputs.source, inputs.target) if ids is not None]
    for ids in rectangles:
        check_countable(request.config, *ids.shape)
    if request.device != "meta":
        item = ITEM_BYTES[request.dtype]
        estimate = kept_bytes if request.backward else activation_bytes
        _check_memory(
            request, sum(estimate(request.config, *ids.shape, item) for ids in rectangles)
        )
    progress(f"building {request.name} on {request.device}")
    with plainly():
        model = build_model(request)
    progress("running one pass")
    return _traced(request, model, inputs)


def _check_memory(request: PassRequest, activations: int) -> None:
    model = build(request.config, device="meta", dtype=torch_dtype(request.dtype))
    parameters = sum(parameter.nbytes for parameter in model.parameters())
    if request.backward:
        parameters *= 2  # and a gradient of each
    kept = "parameters and gradients" if request.backward else "parameters"
    check_fits(request.name, parameters, activations, request.device, kept=kept)


def _traced(request: PassRequest, model: Transformer, inputs: Inputs) -> Traced:
    if request.backward:
        return _completed(traced_backward(request, model, inputs), request, inputs)
    arguments = model_arguments(request.device, inputs)
    recording = record(
        model,
        check=request.check,
        target=request.name,
        config=request.config.to_dict(),
        sizes=input_sizes(request.config, inputs),
    )
    # Without weights a fused kernel is taken apart into what it never makes, unless torch is
    # in inference mode: then it stays whole, as where it really runs.
    quiet = torch.inference_mode() if request.device == "meta" else torch.no_grad()
    try:
        with quiet, recording:
            model(**arguments)
            if request.device == "cuda":
                torch.cuda.synchronize()
    except torch.OutOfMemoryError as error:
        raise ShapetraceError(
            f"{request.name} ran out of memory on {request.device}; use --device meta, "
            "or a smaller --batch, --seq or --dtype"
        ) from error
    return _completed(recording.trace, request, inputs)


def _completed(trace: Trace, request: PassRequest, inputs: Inputs) -> Traced:
    """The trace with what only the caller knows: tokens, notes, where and how it ran."""
    targets = inputs.target.tokens if inputs.target and inputs.target is not inputs.source else ()
    weights = "random" if request.weights is None else str(request.weights)
    ran = (
        ("device", request.device),
        ("dtype", request.dtype),
        ("weights", "none" if request.device == "meta" else weights),
        ("seed", str(request.seed)),
    )
    return Traced.of(
        trace,
        tokens=(*inputs.source.tokens, *targets),
        notes=(*inputs.notes, *trace.notes),
        environment=(*trace.environment, *ran),
    )
