"""What every tokenizer does: text to tokens to ids, and back.

An id is an index into the embedding's rows and nothing more: 7 is not less than 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """One text as its tokens.

    Attributes:
        ids: An id per token.
        tokens: The tokens as people read them; a part of a character is ``<0xE4>``.
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]

    def pairs(self) -> tuple[tuple[str, int], ...]:
        """Token and id, as `Trace.tokens` holds them."""
        return tuple(zip(self.tokens, self.ids, strict=True))


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """The ids that stand for no text; None where the vocabulary has no such token.

    Attributes:
        pad: Fills up shorter sequences.
        bos: Begins a sequence; BERT's ``[CLS]``.
        eos: Ends one; BERT's ``[SEP]``.
        mask: Hides a token from a masked language model.
        unk: Stands for what the vocabulary does not know.
    """

    pad: int | None = None
    bos: int | None = None
    eos: int | None = None
    mask: int | None = None
    unk: int | None = None

    def filler(self) -> int:
        """The id for padding: pad, else eos (as GPT-2 does), else 0; the mask hides it anyway."""
        return next((i for i in (self.pad, self.eos) if i is not None), 0)


class Tokenizer(Protocol):
    """Text to tokens to ids, and back."""

    @property
    def name(self) -> str:
        """What it is, for people: ``byte-level``, or the file."""

    @property
    def vocab_size(self) -> int:
        """The number that every id is below."""

    @property
    def special(self) -> SpecialIds:
        """The ids that stand for no text."""

    def encode(
        self,
        text: str,
        *,
        special: bool = True,
        max_length: int | None = None,
        side: Side = "right",
    ) -> Encoding:
        """A text's tokens and ids.

        Args:
            text: Any text that is not empty.
            special: Whether to add the special tokens that the tokenizer puts around a text.
            max_length: The most tokens to return, special ones included; None for all.
            side: The side that is cut off when there are more.

        Raises:
            ShapetraceError: If the text is empty or no Unicode, has no tokens, or not even
                the special tokens fit.
        """

    def id_of(self, token: str) -> int | None:
        """The id of a token by its name in the vocabulary; None where there is no such token."""

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of some ids; what is no text in them is U+FFFD.

        Args:
            ids: Ids below `vocab_size`.
            skip_special: Whether special tokens leave no trace in the text.

        Raises:
            ShapetraceError: If an id is outside the vocabulary.
        """


def check_text(text: str) -> None:
    """Refuse what no tokenizer can take.

    Raises:
        ShapetraceError: If the text is empty, or holds half of a surrogate pair.
    """
    if not text:
        raise ShapetraceError("the text is empty; give at least one character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ShapetraceError(
            f"the text holds U+{ord(text[error.start]):04X} at place {error.start}, which is no "
            "character by itself; give text in UTF-8"
        ) from error


def check_ids(ids: Sequence[int], vocab_size: int) -> None:
    """Refuse ids that no row of the embedding stands for.

    Args:
        ids: The ids.
        vocab_size: The number that each must be below.

    Raises:
        ShapetraceError: If an id is negative or not below `vocab_size`; names the first.
    """
    for place, index in enumerate(ids):
        if not 0 <= index < vocab_size:
            raise ShapetraceError(
                f"id {index} at place {place} is outside the vocabulary of {vocab_size}; "
                "use the tokenizer that belongs to the model, or set a larger vocab_size"
            )


def check_room(max_length: int | None, special: int) -> None:
    """Refuse a length into which not even the special tokens and one more fit.

    Raises:
        ShapetraceError: If there is no room.
    """
    if max_length is not None and max_length <= special:
        raise ShapetraceError(
            f"a length of {max_length} leaves no room for text beside {special} special tokens; "
            f"allow at least {special + 1}"
        )
