"""From a configuration and ids to a trace: the only part of the face that runs torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapetrace.api.transformer.configuration import plainly
from shapetrace.api.transformer.memory import (
    ITEM_BYTES,
    activation_bytes,
    check_countable,
    check_fits,
    kept_bytes,
)
from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from shapetrace.api.transformer.inputs import Ids, Inputs, RandomIds
    from shapetrace.model.transformer import Transformer
    from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Plan:
    """A pass that is about to run.

    Attributes:
        name: What the user called the model.
        config: Its configuration.
        weights: The directory with its weights; None for random ones.
        device: ``cpu``, ``cuda`` or ``meta``.
        dtype: Of weights and activations.
        seed: Of random weights.
        check: Whether declared annotations are checked.
        backward: Whether the loss is worked out too, and every parameter's gradient.
    """

    name: str
    config: ModelConfig
    weights: Path | None
    device: str
    dtype: str
    seed: int
    check: bool
    backward: bool = False


def run(plan: Plan, inputs: Inputs, progress: Callable[[str], None]) -> Trace:
    """Build the model, run one pass, and return its trace.

    Raises:
        ShapetraceError: When the device is not there, the memory does not suffice, or the
            weights are missing or do not fit.
    """
    check_device(plan.device)
    rectangles = [ids for ids in (inputs.source, inputs.target) if ids is not None]
    for ids in rectangles:
        check_countable(plan.config, *ids.shape)
    if plan.device != "meta":
        item = ITEM_BYTES[plan.dtype]
        estimate = kept_bytes if plan.backward else activation_bytes
        _check_memory(plan, sum(estimate(plan.config, *ids.shape, item) for ids in rectangles))
    progress(f"building {plan.name} on {plan.device}")
    with plainly():
        model = build_model(plan)
    progress("running one pass")
    return _traced(plan, model, inputs)


def check_device(device: str) -> None:
    """Refuse a device that this machine has not.

    Raises:
        ShapetraceError: Naming the devices that it has.
    """
    import torch  # noqa: PLC0415 - torch is slow to import, and bad input is found before

    if device == "cuda" and not torch.cuda.is_available():
        raise ShapetraceError("--device cuda: torch finds no CUDA device; use cpu or meta")


def _check_memory(plan: Plan, activations: int) -> None:
    from shapetrace.model import build  # noqa: PLC0415 - needs torch

    model = build(plan.config, device="meta", dtype=_dtype(plan))
    parameters = sum(parameter.nbytes for parameter in model.parameters())
    if plan.backward:
        parameters *= 2  # and a gradient of each
    kept = "parameters and gradients" if plan.backward else "parameters"
    check_fits(plan.name, parameters, activations, plan.device, kept=kept)


def _dtype(plan: Plan) -> torch.dtype:
    import torch  # noqa: PLC0415

    found: torch.dtype = getattr(torch, plan.dtype)
    return found


def build_model(plan: Plan) -> Transformer:
    """The model: trained weights from its directory, else random ones by the seed.

    The global random state is left as it was.
    """
    import torch  # noqa: PLC0415

    from shapetrace.model import build  # noqa: PLC0415 - needs torch

    if plan.weights is not None and plan.device != "meta":
        from shapetrace.model import from_pretrained  # noqa: PLC0415 - needs safetensors too

        model: Transformer = from_pretrained(
            plan.weights, config=plan.config, device=plan.device, dtype=_dtype(plan)
        )
        return model.eval()
    devices = [torch.cuda.current_device()] if plan.device == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        if not 0 <= plan.seed < 1 << 64:
            raise ShapetraceError(f"seed {plan.seed} is too large; torch takes up to 2^64 - 1")
        torch.manual_seed(plan.seed)
        return build(plan.config, device=plan.device, dtype=_dtype(plan)).eval()


def _traced(plan: Plan, model: Transformer, inputs: Inputs) -> Trace:
    import torch  # noqa: PLC0415

    from shapetrace.capture.recording import record  # noqa: PLC0415 - needs torch

    if plan.backward:
        from shapetrace.api.transformer.backward import traced_backward  # noqa: PLC0415 - needs torch

        return _completed(traced_backward(plan, model, inputs), plan, inputs)
    arguments = arguments_of(plan, inputs)
    recording = record(
        model,
        check=plan.check,
        target=plan.name,
        config=plan.config.to_dict(),
        sizes=sizes_of(plan.config, inputs),
    )
    # Without weights a fused kernel is taken apart into what it never makes, unless torch is
    # in inference mode: then it stays whole, as where it really runs.
    quiet = torch.inference_mode() if plan.device == "meta" else torch.no_grad()
    try:
        with quiet, recording:
            model(**arguments)
            if plan.device == "cuda":
                torch.cuda.synchronize()
    except torch.OutOfMemoryError as error:
        raise ShapetraceError(
            f"{plan.name} ran out of memory on {plan.device}; use --device meta, "
            "or a smaller --batch, --seq or --dtype"
        ) from error
    return _completed(recording.trace, plan, inputs)


def arguments_of(plan: Plan, inputs: Inputs) -> dict[str, Any]:
    """What the model is called with."""
    found = {"token_ids": _ids(plan, inputs.source), "mask": _mask(plan, inputs.source)}
    if inputs.target is not None:
        found["target_ids"] = _ids(plan, inputs.target)
        found["target_mask"] = _mask(plan, inputs.target)
    return {name: value for name, value in found.items() if value is not None}


def _ids(plan: Plan, ids: Ids | RandomIds) -> torch.Tensor:
    import torch  # noqa: PLC0415

    if plan.device == "meta":
        return torch.empty(ids.shape, dtype=torch.int64, device="meta")
    return torch.tensor(ids.ids, dtype=torch.int64, device=plan.device)


def _mask(plan: Plan, ids: Ids | RandomIds) -> torch.Tensor | None:
    import torch  # noqa: PLC0415

    return None if ids.mask is None else torch.tensor(ids.mask, device=plan.device)


def sizes_of(config: ModelConfig, inputs: Inputs) -> dict[str, int]:
    """The input's axes by the spec's names: `m` is the source where there is a target."""
    B, n = inputs.source.shape
    if config.kind != "encoder-decoder" or inputs.target is None:
        return {"B": B, "n": n}
    return {"B": B, "m": n, "n": inputs.target.shape[1]}


def _completed(trace: Trace, plan: Plan, inputs: Inputs) -> Trace:
    """The trace with what only the caller knows: tokens, notes, where and how it ran."""
    targets = inputs.target.tokens if inputs.target and inputs.target is not inputs.source else ()
    weights = "random" if plan.weights is None else str(plan.weights)
    ran = (
        ("device", plan.device),
        ("dtype", plan.dtype),
        ("weights", "none" if plan.device == "meta" else weights),
        ("seed", str(plan.seed)),
    )
    return replace(
        trace,
        tokens=(*inputs.source.tokens, *targets),
        notes=(*inputs.notes, *trace.notes),
        environment=(*trace.environment, *ran),
    )
