"""The ids that begin and end a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.model import ModelConfig
    from shapetrace.text import Tokenizer


def start_id(config: ModelConfig, tokenizer: Tokenizer) -> int:
    """The token that an encoder-decoder's target begins with."""
    special = tokenizer.special
    known = (config.bos_id, special.bos, config.pad_id, special.pad, config.eos_id, special.eos)
    return next((found for found in known if found is not None), 0)


def end_id(config: ModelConfig, tokenizer: Tokenizer) -> int:
    """The token that an encoder-decoder's target ends with."""
    return next(iter(end_ids(config, tokenizer)), 0)


def end_ids(config: ModelConfig, tokenizer: Tokenizer) -> list[int]:
    """The token after which a text has ended, by the configuration or else the tokenizer."""
    known = (config.eos_id, tokenizer.special.eos)
    return [found for found in known if found is not None][:1]
