"""From a text, or pairs of texts, to the batches that a kind of model learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.api.transformer.special_ids import end_id, start_id
from shapetrace.errors import ShapetraceError
from shapetrace.model.training import Data, MaskedText, Pairs, Text, TrainingSettings
from shapetrace.text import check_ids

if TYPE_CHECKING:
    from pathlib import Path

    from shapetrace.api.transformer.requests import TrainingRequest
    from shapetrace.model import ModelConfig
    from shapetrace.text import Tokenizer


def batches_of(request: TrainingRequest, training: TrainingSettings) -> tuple[Data, int]:
    """Batches of the kind that the model learns from, and how many tokens there are.

    Raises:
        ShapetraceError: For data that the model cannot learn from.
        ModelError: For data that is too short.
    """
    config, tokenizer = request.config, request.tokenizer
    if config.kind == "encoder-decoder":
        return _pairs(request)
    ids = _ids(config, tokenizer, request.text)
    if config.kind == "decoder":
        stream = Text(ids)
        stream.check(training.seq)
        return stream, len(ids)
    mask = tokenizer.special.mask
    if mask is None:
        raise ShapetraceError(f"tokenizer {tokenizer.name} has no mask token to hide tokens with")
    masked = MaskedText(ids, mask, config.vocab_size, training.mask_rate)
    masked.check(training.seq)
    return masked, len(ids)


def _pairs(request: TrainingRequest) -> tuple[Data, int]:
    config, tokenizer = request.config, request.tokenizer
    pairs = read_pairs(request.text, request.data)
    sources = [_ids(config, tokenizer, source) for source, _ in pairs]
    targets = [_ids(config, tokenizer, target) for _, target in pairs]
    tokens = sum(map(len, sources)) + sum(map(len, targets))
    ends = start_id(config, tokenizer), end_id(config, tokenizer)
    return Pairs(sources, targets, *ends), tokens


def read_pairs(text: str, file: Path) -> list[tuple[str, str]]:
    """Sources and targets: one pair on each line, with a tab between.

    Raises:
        ShapetraceError: Naming the line that is no pair.
    """
    pairs = []
    for number, line in enumerate(text.split("\n"), 1):  # other separators belong to the text
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 2 or not all(part.strip() for part in parts):  # noqa: PLR2004 - a pair
            filled = sum(1 for part in parts if part.strip())
            raise ShapetraceError(
                f"data file {file}, line {number}: expected a source, one tab and a target, "
                f"found {len(parts) - 1} tab{'' if len(parts) == 2 else 's'} "  # noqa: PLR2004
                f"and {filled} text{'' if filled == 1 else 's'}"
            )
        pairs.append((parts[0], parts[1]))
    return pairs


def _ids(config: ModelConfig, tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    ids = tokenizer.encode(text, special=False).ids
    check_ids(ids, config.vocab_size)
    return ids
