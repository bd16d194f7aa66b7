"""The tokenizer that needs no file: a token per byte of UTF-8.

Valid UTF-8 never contains the bytes 0xC0, 0xC1 and 0xF5 to 0xFF (RFC 3629, section 1), so
the special tokens take the last of those, and the whole vocabulary is 256 ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError
from shapetrace.text.tokenizer import Encoding, SpecialIds, check_ids, check_room, check_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapetrace.text.tokenizer import Side

BYTES = 256
_SPECIAL = {0xFC: "<mask>", 0xFD: "<pad>", 0xFE: "<bos>", 0xFF: "<eos>"}
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class ByteTokenizer:
    """A token per byte; an id is the byte's value.

    Ids from 256 up to a larger model's vocabulary exist but mean nothing here; an untrained
    model may still choose them, and they decode to U+FFFD.
    """

    def __init__(self, vocab_size: int = BYTES) -> None:
        if vocab_size < BYTES:
            raise ShapetraceError(
                f"vocab_size is {vocab_size}, but text without a tokenizer.json is read as bytes "
                f"and needs {BYTES}; set vocab_size to at least {BYTES}, or give a tokenizer.json"
            )
        self._vocab_size = vocab_size

    @property
    def name(self) -> str:
        """What it is, for people."""
        return "byte-level"

    @property
    def vocab_size(self) -> int:
        """The number that every id is below: the model's own, not only 256."""
        return self._vocab_size

    @property
    def special(self) -> SpecialIds:
        """The ids of bytes that no text has."""
        return SpecialIds(mask=0xFC, pad=0xFD, bos=0xFE, eos=0xFF)

    def encode(
        self,
        text: str,
        *,
        special: bool = True,
        max_length: int | None = None,
        side: Side = "right",
    ) -> Encoding:
        """A text's bytes; see `Tokenizer.encode`. No special token is added either way."""
        del special
        check_text(text)
        check_room(max_length, 0)
        ids = tuple(text.encode())
        if max_length is not None and len(ids) > max_length:
            ids = ids[:max_length] if side == "right" else ids[-max_length:]
        return Encoding(ids, tuple(map(show_byte, ids)))

    def id_of(self, token: str) -> int | None:
        """The id of a special token by its name, or of a single byte."""
        named = {name: index for index, name in _SPECIAL.items()}
        data = token.encode(errors="replace")
        return named.get(token, data[0] if len(data) == 1 else None)

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of some bytes; see `Tokenizer.decode`."""
        check_ids(ids, self._vocab_size)
        parts: list[str] = []
        run = bytearray()
        for index in ids:
            if index < BYTES and index not in _SPECIAL:
                run.append(index)
                continue
            parts.append(run.decode(errors="replace"))
            run.clear()
            if index >= BYTES:
                parts.append(_UNKNOWN)
            elif not skip_special:
                parts.append(_SPECIAL[index])
        return "".join([*parts, run.decode(errors="replace")])


def show_byte(byte: int) -> str:
    """A byte as people read it: ASCII as itself, special tokens by name, others in hex."""
    if byte in _SPECIAL:
        return _SPECIAL[byte]
    return chr(byte) if chr(byte).isascii() and chr(byte).isprintable() else f"<0x{byte:02X}>"
