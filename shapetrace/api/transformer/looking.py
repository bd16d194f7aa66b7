"""The running part of looking inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.api.transformer.building import build_model, model_arguments
from shapetrace.api.transformer.memory import (
    ITEM_BYTES,
    activation_bytes,
    check_fits,
    looked_at_bytes,
)
from shapetrace.api.transformer.requests import PassRequest
from shapetrace.model.looking import Look, looks
from shapetrace.model.transformer import frame

if TYPE_CHECKING:
    from pathlib import Path

    from shapetrace.api.transformer.inputs import Inputs
    from shapetrace.model import ModelConfig


def look(
    name: str, config: ModelConfig, weights: Path | None, inputs: Inputs, seed: int
) -> list[Look]:
    """Build the model, run it once, and return what its attention layers looked at.

    Raises:
        ShapetraceError: If the memory does not suffice.
    """
    _check_memory(name, config, inputs)
    request = PassRequest(name=name, config=config, weights=weights, seed=seed)
    model = build_model(request)
    arguments = model_arguments(request.device, inputs)
    return looks(model, lambda: model(**arguments))


def _check_memory(name: str, config: ModelConfig, inputs: Inputs) -> None:
    item = ITEM_BYTES["float32"]
    parameters = sum(parameter.numel() * item for parameter in frame(config).parameters())
    n = max(side.shape[1] for side in (inputs.source, inputs.target) if side is not None)
    activations = activation_bytes(config, 1, n, item) + looked_at_bytes(config, n)
    check_fits(name, parameters, activations, "cpu", "a shorter --text or a smaller model")
