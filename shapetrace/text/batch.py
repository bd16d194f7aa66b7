"""Several texts as one rectangle of ids, and the mask that says which are real."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError
from shapetrace.text.tokenizer import Encoding, check_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapetrace.text.tokenizer import Side, Tokenizer


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of one length, ``B`` rows of ``n``.

    Attributes:
        ids: A row of ids per text.
        mask: The same shape: 1 for a token of the text, 0 for padding.
        encodings: Each text's tokens, without padding.
    """

    ids: list[list[int]]
    mask: list[list[int]]
    encodings: tuple[Encoding, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """``B`` and ``n``."""
        return len(self.ids), len(self.ids[0])

    @property
    def tokens(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Token and id per text, as `Trace.tokens` holds them."""
        return tuple(encoding.pairs() for encoding in self.encodings)


def encode_batch(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    max_length: int | None = None,
    truncate: Side | None = None,
    pad: Side = "right",
    length: int | None = None,
    vocab_size: int | None = None,
    special: bool = True,
) -> Batch:
    """Encode texts, and pad the shorter ones to one length.

    Args:
        tokenizer: What encodes them.
        texts: One or more.
        max_length: The most tokens that a text may have; None for any number.
        truncate: The side to cut longer texts at; None to refuse them.
        pad: The side that padding goes to.
        length: The length to pad to; None for that of the longest text.
        vocab_size: The model's own vocabulary, for tokenizers that know more tokens.
        special: Whether to add the special tokens that the tokenizer puts around a text.

    Returns:
        The ids, and the mask of the same shape.

    Raises:
        ShapetraceError: If there is no text, one is empty or has an id outside of the
            vocabulary, or one is longer than `max_length` (or `length`) and not truncated.
    """
    if not texts:
        raise ShapetraceError("there is no text; give at least one")
    limit = min((bound for bound in (max_length, length) if bound is not None), default=None)
    encodings = tuple(
        _encode_one(tokenizer, text, where, limit, truncate, special=special)
        for text, where in zip(texts, _places(len(texts)), strict=True)
    )
    for encoding in encodings:
        check_ids(encoding.ids, tokenizer.vocab_size if vocab_size is None else vocab_size)
    rows = [encoding.ids for encoding in encodings]
    return Batch(*pad_rows(rows, tokenizer.special.filler(), pad=pad, length=length), encodings)


def pad_rows(
    rows: Sequence[Sequence[int]], filler: int, *, pad: Side = "right", length: int | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """Rows of ids brought to one length.

    Args:
        rows: Ids, ``B`` rows of any lengths.
        filler: The id to pad with.
        pad: The side that padding goes to.
        length: The length, not below that of any row; None for that of the longest.

    Returns:
        The rows, and the mask of the same shape: 1 for real, 0 for padding.
    """
    width = max(map(len, rows)) if length is None else length
    ids, mask = [], []
    for row in rows:
        missing = width - len(row)
        left, right = (missing, 0) if pad == "left" else (0, missing)
        ids.append([filler] * left + [*row] + [filler] * right)
        mask.append([0] * left + [1] * len(row) + [0] * right)
    return ids, mask


def _encode_one(
    tokenizer: Tokenizer,
    text: str,
    where: str,
    limit: int | None,
    truncate: Side | None,
    *,
    special: bool,
) -> Encoding:
    try:
        encoding = tokenizer.encode(text, special=special)
        if limit is None or len(encoding.ids) <= limit:
            return encoding
        if truncate is not None:
            return tokenizer.encode(text, special=special, max_length=limit, side=truncate)
    except ShapetraceError as error:
        raise ShapetraceError(f"{where}{error}") from error
    raise ShapetraceError(
        f"{where}the text has {len(encoding.ids)} tokens, but at most {limit} fit; "
        "shorten it, or have it truncated"
    )


def _places(count: int) -> list[str]:
    """What an error says first: which text, where there are several."""
    return [""] if count == 1 else [f"text {number} of {count}: " for number in range(1, count + 1)]
