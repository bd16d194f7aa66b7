"""Our own model made, and what it is called with: device, weights, dtype; ids and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from shapetrace.errors import ShapetraceError
from shapetrace.model import build, from_pretrained
from shapetrace.model.settings import check_seed

if TYPE_CHECKING:
    from shapetrace.api.transformer.inputs import Ids, Inputs, RandomIds
    from shapetrace.api.transformer.requests import PassRequest
    from shapetrace.model import ModelConfig
    from shapetrace.model.transformer import Transformer


def check_device(device: str) -> None:
    """Refuse a device that this machine has not.

    Raises:
        ShapetraceError: Naming the devices that it has.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ShapetraceError("--device cuda: torch finds no CUDA device; use cpu or meta")


def torch_dtype(name: str) -> torch.dtype:
    """The dtype of a name."""
    found: torch.dtype = getattr(torch, name)
    return found


def build_model(request: PassRequest) -> Transformer:
    """The model: trained weights from its directory, else random ones by the seed.

    The global random state is left as it was.
    """
    dtype = torch_dtype(request.dtype)
    if request.weights is not None and request.device != "meta":
        model: Transformer = from_pretrained(
            request.weights, config=request.config, device=request.device, dtype=dtype
        )
        return model.eval()
    devices = [torch.cuda.current_device()] if request.device == "cuda" else []
    check_seed(request.seed)
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(request.seed)
        return build(request.config, device=request.device, dtype=dtype).eval()


def model_arguments(device: str, inputs: Inputs) -> dict[str, Any]:
    """What the model is called with."""
    found = {"token_ids": _ids(device, inputs.source), "mask": _mask(device, inputs.source)}
    if inputs.target is not None:
        found["target_ids"] = _ids(device, inputs.target)
        found["target_mask"] = _mask(device, inputs.target)
    return {name: value for name, value in found.items() if value is not None}


def _ids(device: str, ids: Ids | RandomIds) -> torch.Tensor:
    if device == "meta":
        return torch.empty(ids.shape, dtype=torch.int64, device="meta")
    return torch.tensor(ids.ids, dtype=torch.int64, device=device)


def _mask(device: str, ids: Ids | RandomIds) -> torch.Tensor | None:
    return None if ids.mask is None else torch.tensor(ids.mask, device=device)


def input_sizes(config: ModelConfig, inputs: Inputs) -> dict[str, int]:
    """The input's axes by the spec's names: `m` is the source where there is a target."""
    B, n = inputs.source.shape
    if config.kind != "encoder-decoder" or inputs.target is None:
        return {"B": B, "n": n}
    return {"B": B, "m": n, "n": inputs.target.shape[1]}
