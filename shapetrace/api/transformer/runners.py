"""The one door to what needs torch: bad input is found, and help shown, before it is opened."""

# ruff: noqa: PLC0415 - torch takes seconds to import, and this file is where it is put off

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shapetrace.api.transformer.inputs import Inputs
    from shapetrace.api.transformer.requests import (
        GenerationRequest,
        OnText,
        PassRequest,
        TrainingRequest,
    )
    from shapetrace.api.transformer.results import Trained
    from shapetrace.model import ModelConfig
    from shapetrace.model.looking import Look
    from shapetrace.model.training import Progress
    from shapetrace.report.generation.records import Generation
    from shapetrace.report.traced import Traced


def run_pass(request: PassRequest, inputs: Inputs, progress: Callable[[str], None]) -> Traced:
    """One pass, traced; see `shapetrace.api.transformer.run_pass`."""
    from shapetrace.api.transformer.run_pass import run_pass as run

    return run(request, inputs, progress)


def run_generation(request: GenerationRequest, on_text: OnText | None) -> Generation:
    """A generation; see `shapetrace.api.transformer.generate_run`."""
    from shapetrace.api.transformer.generate_run import run_generation as run

    return run(request, on_text)


def run_training(request: TrainingRequest, on_step: Callable[[Progress], None]) -> Trained:
    """A training; see `shapetrace.api.transformer.train_run`."""
    from shapetrace.api.transformer.train_run import run_training as run

    return run(request, on_step)


def run_looking(
    name: str, config: ModelConfig, weights: Path | None, inputs: Inputs, seed: int
) -> list[Look]:
    """What attention layers look at; see `shapetrace.api.transformer.looking`."""
    from shapetrace.api.transformer.looking import look

    return look(name, config, weights, inputs, seed)
