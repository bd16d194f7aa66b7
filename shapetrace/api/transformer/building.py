"""A Transformer made: on which device, with which weights, of which dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from shapetrace.errors import ShapetraceError
from shapetrace.model import build, from_pretrained
from shapetrace.model.seeds import check_seed

if TYPE_CHECKING:
    from shapetrace.api.transformer.requests import PassRequest
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
