"""What goes into a pass: texts as ids, or random ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from shapetrace.api.transformer.choices import check_texts
from shapetrace.errors import ShapetraceError
from shapetrace.reading import read_text
from shapetrace.text import Batch, encode_batch

_MOST_MEBIBYTES = 64
"""Of a text file; no model reads as much in a pass."""

if TYPE_CHECKING:
    from shapetrace.model import ModelConfig
    from shapetrace.text import Tokenizer

RANDOM_BATCH, RANDOM_LENGTH = 2, 16
"""Size of the random input when nothing is said: small, and no two axes alike."""


@dataclass(frozen=True, slots=True)
class Ids:
    """A rectangle of ids.

    Attributes:
        ids: ``B`` rows of ``n`` ids.
        mask: The same shape, true at real tokens; None where there is no padding.
        tokens: Each text's tokens and ids; empty for random ids.
    """

    ids: Sequence[Sequence[int]]
    mask: Sequence[Sequence[bool]] | None = None
    tokens: tuple[tuple[tuple[str, int], ...], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """``B`` and ``n``."""
        return len(self.ids), len(self.ids[0])


@dataclass(frozen=True, slots=True)
class RandomIds:
    """A rectangle of random ids, drawn when they are asked for: a size alone costs nothing.

    Attributes:
        shape: ``B`` and ``n``.
        vocab_size: Every id is below it.
        seed: The same seed gives the same ids.
    """

    shape: tuple[int, int]
    vocab_size: int
    seed: int | str

    @property
    def ids(self) -> list[list[int]]:
        """``B`` rows of ``n`` ids."""
        random = Random(self.seed)  # noqa: S311 - any numbers will do
        B, n = self.shape
        return [[random.randrange(self.vocab_size) for _ in range(n)] for _ in range(B)]

    @property
    def mask(self) -> None:
        """Nothing is padding."""

    @property
    def tokens(self) -> tuple[()]:
        """There is no text."""
        return ()


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a model is called with.

    Attributes:
        source: The text; the only one unless the model is an encoder-decoder.
        target: What an encoder-decoder is to write.
        notes: What was filled in, in words.
    """

    source: Ids | RandomIds
    target: Ids | RandomIds | None = None
    notes: tuple[str, ...] = ()


def read_texts(
    texts: Sequence[str] | None, file: Path | None, option: str = "--text"
) -> list[str] | None:
    """The texts that are given one way or the other; None when there are none.

    Args:
        texts: Texts.
        file: A file with one.
        option: What the texts are given by.

    Raises:
        ShapetraceError: For both ways at once, or a file that cannot be read as UTF-8.
    """
    check_texts(_argument(option), texts)
    if file is None:
        return list(texts) if texts else None
    if texts:
        raise ShapetraceError(f"{option} and --text-file are both given; give one of them")
    try:
        return [read_text(Path(file), _MOST_MEBIBYTES)]
    except OSError as error:
        raise ShapetraceError(f"cannot read text file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ShapetraceError(f"text file {file} is not UTF-8 (byte {error.start})") from error


def _argument(option: str) -> str:
    """What Python calls an option that may be repeated."""
    return option.removeprefix("--").replace("-", "_") + "s"


def only_text(text: str | None, file: Path | None) -> str:
    """The one text that is given one way or the other.

    Raises:
        ShapetraceError: As `read_texts`, or where there is none.
    """
    if text is not None and not isinstance(text, str):
        raise ShapetraceError(f"text={text!r} is no text; give one string")
    found = read_texts(None if text is None else [text], file)
    if found is None:
        raise ShapetraceError("no text is given; give --text or --text-file")
    return found[0]


def text_inputs(
    config: ModelConfig,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    targets: Sequence[str] | None,
) -> Inputs:
    """Texts as padded batches, with targets where the model writes one.

    Raises:
        ShapetraceError: For an empty text, one that is longer than the positions or has ids
            beyond the vocabulary, or targets that do not match.
    """
    check_texts("target_texts", targets)
    source = _encoded(config, tokenizer, texts)
    if config.kind != "encoder-decoder":
        _refuse_targets(config, targets)
        return Inputs(source)
    if targets is None:
        note = "no target text was given: the text itself is the target"
        return Inputs(source, source, (note,))
    if len(targets) != len(texts):
        raise ShapetraceError(
            f"{len(texts)} texts and {len(targets)} target texts are given; give one target per text"
        )
    return Inputs(source, _encoded(config, tokenizer, targets))


def random_inputs(
    config: ModelConfig,
    batch: int | None,
    seq: int | None,
    targets: Sequence[str] | None,
    seed: int,
) -> Inputs:
    """Random ids of a given size; the same for the same seed.

    Raises:
        ShapetraceError: For sizes below 1, a sequence longer than the learned positions, or
            target texts without texts.
    """
    if targets is not None:
        _refuse_targets(config, targets)
        raise ShapetraceError("--target-text needs a --text or --text-file beside it")
    limit = position_limit(config)
    B = RANDOM_BATCH if batch is None else batch
    n = min(RANDOM_LENGTH, limit or RANDOM_LENGTH) if seq is None else seq
    if type(B) is not int or type(n) is not int:
        raise ShapetraceError(f"batch={B!r}, seq={n!r}: both are whole numbers")
    if B < 1 or n < 1:
        raise ShapetraceError(f"a batch of {B} by {n} ids is empty; --batch and --seq start at 1")
    if limit is not None and n > limit:
        raise ShapetraceError(
            f"--seq {n} is longer than the {limit} learned positions; "
            f"use at most {limit}, or --set max_positions={n}"
        )
    source = RandomIds((B, n), config.vocab_size, seed)
    if config.kind != "encoder-decoder":
        return Inputs(source)
    return Inputs(source, RandomIds((B, n), config.vocab_size, f"target {seed}"))


def position_limit(config: ModelConfig) -> int | None:
    """The most tokens that the model has positions for; None where they are computed."""
    return config.max_positions if config.positions == "learned" else None


def _encoded(config: ModelConfig, tokenizer: Tokenizer, texts: Sequence[str]) -> Ids:
    batch = encode_batch(tokenizer, texts, vocab_size=config.vocab_size)
    limit = position_limit(config)
    longest = max(len(encoding.ids) for encoding in batch.encodings)
    if limit is not None and longest > limit:
        raise ShapetraceError(
            f"a text has {longest} tokens, but the model has {limit} learned positions; shorten it"
        )
    return Ids(batch.ids, _mask(batch), batch.tokens)


def _mask(batch: Batch) -> list[list[bool]] | None:
    if all(all(row) for row in batch.mask):
        return None
    return [[bool(real) for real in row] for row in batch.mask]


def _refuse_targets(config: ModelConfig, targets: Sequence[str] | None) -> None:
    if targets and config.kind != "encoder-decoder":
        raise ShapetraceError(
            f"--target-text is for encoder-decoder models, and this one is of kind {config.kind!r}; "
            "leave it out"
        )
