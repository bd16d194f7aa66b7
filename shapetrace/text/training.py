"""A tokenizer of one's own: byte-level BPE, learned from the text that a model will read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError
from shapetrace.text.bytelevel import BYTES
from shapetrace.text.tokenizer_json import JsonTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

SPECIAL = ("<pad>", "<bos>", "<eos>", "<mask>")


def train_tokenizer(texts: Sequence[str], vocab_size: int) -> tuple[JsonTokenizer, bytes]:
    """Learn a byte-level BPE tokenizer; Sennrich et al. 2016, Radford et al. 2019.

    Args:
        texts: What to learn from.
        vocab_size: Tokens; every byte and four special ones are among them.

    Returns:
        The tokenizer, and its ``tokenizer.json``.

    Raises:
        ShapetraceError: There is no room for every byte, or the text has not so many parts.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - only it needs it

    least = BYTES + len(SPECIAL)
    if vocab_size < least:
        raise ShapetraceError(f"a vocabulary of {vocab_size} is too small; it starts at {least}")
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    if raw.get_vocab_size() != vocab_size:
        raise ShapetraceError(
            f"the text yields only {raw.get_vocab_size()} tokens; ask for so many, or give more text"
        )
    return JsonTokenizer(raw, "tokenizer.json"), raw.to_str().encode()
