"""The running part of looking inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.api.running import Plan, arguments_of, build_model
from shapetrace.model.looking import Look, looks

if TYPE_CHECKING:
    from pathlib import Path

    from shapetrace.api.inputs import Inputs
    from shapetrace.model import ModelConfig


def look(
    name: str, config: ModelConfig, weights: Path | None, inputs: Inputs, seed: int
) -> list[Look]:
    """Build the model, run it once, and return what its attention layers looked at."""
    plan = Plan(name, config, weights, "cpu", "float32", seed, check=False)
    model = build_model(plan)
    arguments = arguments_of(plan, inputs)
    return looks(model, lambda: model(**arguments))
