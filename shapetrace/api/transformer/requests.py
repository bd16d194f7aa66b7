"""What is to be done with a Transformer, once it is known to make sense; none of it needs torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapetrace.model import ModelConfig
from shapetrace.text import Tokenizer

OnText = Callable[[int, str], None]
"""Told of new text as it is made: the number of the text, and the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRequest:
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
    device: str = "cpu"
    dtype: str = "float32"
    seed: int = 0
    check: bool = False
    backward: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """What is to be generated, as the user says it; see `generate`."""

    name: str
    config: ModelConfig
    weights: Path | None
    tokenizer: Tokenizer
    prompts: tuple[str, ...]
    prompt_ids: tuple[tuple[int, ...], ...]
    stop_ids: frozenset[int]
    max_new_tokens: int
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int
    samples: int
    start_id: int
    cache: bool
    device: str
    dtype: str
    trace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """A training that is about to run; see `train`.

    Attributes:
        tokenizer: Of the data.
        text: The data.
        data: The file that it is from, for errors.
        settings: Fields of `shapetrace.model.training.TrainingSettings`.
        files: The tokenizer's files, which go into each checkpoint.
    """

    name: str
    config: ModelConfig
    weights: Path | None
    tokenizer: Tokenizer
    text: str
    data: Path
    settings: Mapping[str, Any]
    output: Path | None
    resume: bool
    files: Mapping[str, bytes]
    device: str
    trace: bool
    keep_state: bool
