"""What our own model is called with: ids and masks as tensors, and the sizes of their axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from shapetrace.api.transformer.inputs import Ids, Inputs, RandomIds
    from shapetrace.model import ModelConfig


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
