"""What a model learns from: batches of tokens, with what is to be predicted beside them.

A batch depends on the seed and its number alone, so that a run which was interrupted goes on
with the batches that it would have had.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, arange, rand, randint, tensor, where

from shapetrace.model.errors import ModelError

IGNORED = -100
"""Label of a position that is not to be predicted; torch's own convention."""


@dataclass(frozen=True)
class TrainingBatch:
    """Inputs and what is to be predicted.

    Attributes:
        token_ids: The text; of an encoder-decoder, the source.
        labels: The token to be predicted at each position; -100 where there is none.
        mask: True at real tokens of `token_ids`; None where there is no padding.
        target_ids: What the decoder of an encoder-decoder reads, one behind the labels.
        target_mask: True at its real tokens; None where there is no padding.
    """

    token_ids: Int[Tensor, "B m"]
    labels: Int[Tensor, "B n"]
    mask: Bool[Tensor, "B m"] | None = None
    target_ids: Int[Tensor, "B n"] | None = None
    target_mask: Bool[Tensor, "B n"] | None = None

    @property
    def predicted(self) -> int:
        """Tokens to be predicted."""
        if self.labels.is_meta:
            return self.labels.numel()  # which are padding cannot be known; only the loss needs it
        return int((self.labels != IGNORED).sum())

    def to(self, device: torch.device) -> "TrainingBatch":
        """The same on a device."""
        if device.type == "cpu":
            return self
        moved = (None if value is None else value.to(device) for value in vars(self).values())
        return TrainingBatch(*moved)  # type: ignore[arg-type]


@runtime_checkable
class Data(Protocol):
    """Where batches come from."""

    def batch(
        self, B: int, n: int, generator: Generator, *, held_out: bool = False
    ) -> TrainingBatch:
        """Any `B` of the texts, `n` tokens of each."""


class Text:
    """One long text: at each position the next token is to be predicted (decoders)."""

    def __init__(self, ids: Sequence[int], held_out: float = 0.1) -> None:
        """Take the text.

        Args:
            ids: All its tokens.
            held_out: The part at its end that is not trained on.
        """
        kept = max(1, round(len(ids) * (1 - held_out)))
        self.train: Int[Tensor, " tokens"] = tensor(list(ids[:kept]))
        self.rest: Int[Tensor, " tokens"] = tensor(list(ids[kept:]), dtype=torch.int64)

    def check(self, n: int) -> None:
        """Refuse windows that do not fit.

        Raises:
            ModelError: The text is shorter than a sequence.
        """
        if self.train.shape[0] <= n:
            raise ModelError(
                f"the data has {self.train.shape[0]} tokens to train on, and a sequence needs "
                f"{n + 1}; give more text, or shorter sequences"
            )

    def windows(
        self, B: int, n: int, generator: Generator, *, held_out: bool
    ) -> Int[Tensor, "B span"]:
        """Any `B` stretches of `n` + 1 tokens."""
        self.check(n)
        ids: Int[Tensor, " tokens"] = (
            self.rest if held_out and self.rest.shape[0] > n else self.train
        )
        starts: Int[Tensor, "B 1"] = randint(ids.shape[0] - n, (B,), generator=generator)[:, None]
        places: Int[Tensor, "B span"] = starts + arange(n + 1)
        return ids[places]  # a copy: a slice would keep the whole text in the memory of a step

    def batch(
        self, B: int, n: int, generator: Generator, *, held_out: bool = False
    ) -> TrainingBatch:
        """Texts, and at each position the token after it."""
        window: Int[Tensor, "B span"] = self.windows(B, n, generator, held_out=held_out)
        return TrainingBatch(window[:, :-1], window[:, 1:])


class MaskedText(Text):
    """One long text in which some tokens are hidden, and to be predicted (encoders).

    Of the chosen tokens 8 of 10 are hidden, 1 is replaced by any other, 1 left as it is;
    Devlin et al. 2018, section 3.1.
    """

    def __init__(
        self, ids: Sequence[int], mask_id: int, vocab_size: int, rate: float = 0.15
    ) -> None:
        super().__init__(ids)
        self.mask_id, self.vocab_size, self.rate = mask_id, vocab_size, rate

    def batch(
        self, B: int, n: int, generator: Generator, *, held_out: bool = False
    ) -> TrainingBatch:
        """Texts with some tokens hidden, and those tokens."""
        window: Int[Tensor, "B n"] = self.windows(B, n - 1, generator, held_out=held_out)
        chosen: Bool[Tensor, "B n"] = rand(window.shape, generator=generator) < self.rate
        chosen[:, 0] |= ~chosen.any(-1)  # a text with nothing to guess teaches nothing
        fate: Float[Tensor, "B n"] = rand(window.shape, generator=generator)
        other: Int[Tensor, "B n"] = randint(self.vocab_size, window.shape, generator=generator)
        hidden: Int[Tensor, "B n"] = window.masked_fill(chosen & (fate < 0.8), self.mask_id)  # noqa: PLR2004
        hidden = where(chosen & (fate >= 0.9), other, hidden)  # noqa: PLR2004
        return TrainingBatch(hidden, window.masked_fill(~chosen, IGNORED))


class Pairs:
    """Sources with the targets that belong to them (encoder-decoders)."""

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        start_id: int,
        end_id: int,
        held_out: float = 0.1,
    ) -> None:
        """Take the pairs.

        Args:
            sources: The tokens of each source.
            targets: The tokens of each target.
            start_id: The token that the decoder begins with.
            end_id: The token that it is to end with.
            held_out: The part of the pairs, at the end, that is not trained on.

        Raises:
            ModelError: There are none, or not as many targets as sources.
        """
        if len(sources) != len(targets):
            raise ModelError(f"{len(sources)} sources and {len(targets)} targets do not line up")
        if not sources:
            raise ModelError("the data has no pairs")
        kept = max(1, round(len(sources) * (1 - held_out)))
        pairs = [
            (list(source), [start_id, *target, end_id])
            for source, target in zip(sources, targets, strict=True)
        ]
        self.train, self.rest = pairs[:kept], pairs[kept:] or pairs[:kept]

    @property
    def longest(self) -> int:
        """Tokens of the longest source, or target with its start."""
        return max(max(len(source), len(target) - 1) for source, target in self.train + self.rest)

    def batch(
        self, B: int, n: int, generator: Generator, *, held_out: bool = False
    ) -> TrainingBatch:
        """Sources, and targets shifted by one; longer ones are cut at `n`."""
        pairs = self.rest if held_out else self.train
        chosen = [pairs[i] for i in randint(len(pairs), (B,), generator=generator).tolist()]
        token_ids: Int[Tensor, "B m"]
        mask: Bool[Tensor, "B m"]
        target_ids: Int[Tensor, "B n"]
        target_mask: Bool[Tensor, "B n"]
        labels: Int[Tensor, "B n"]
        real: Bool[Tensor, "B n"]
        token_ids, mask = padded([source[:n] for source, _ in chosen])
        target_ids, target_mask = padded([target[:-1][:n] for _, target in chosen])
        labels, real = padded([target[1 : n + 1] for _, target in chosen])
        return TrainingBatch(
            token_ids,
            labels.masked_fill(~real, IGNORED),
            None if mask.all() else mask,
            target_ids,
            None if target_mask.all() else target_mask,
        )


def padded(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "B n"], Bool[Tensor, "B n"]]:
    """Rows of ids brought to one length, and a mask that is true at the real ones."""
    n = max(map(len, rows))
    ids: Int[Tensor, "B n"] = tensor([list(row) + [0] * (n - len(row)) for row in rows])
    mask: Bool[Tensor, "B n"] = tensor([[i < len(row) for i in range(n)] for row in rows])
    return ids, mask
