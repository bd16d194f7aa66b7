"""Tokenizers from a ``tokenizer.json``, by the tokenizers library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from shapetrace.errors import ShapetraceError
from shapetrace.reading import read_text
from shapetrace.text.bytelevel import ByteTokenizer, show_byte
from shapetrace.text.tokenizer import Encoding, SpecialIds, check_ids, check_room, check_text

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from tokenizers import Encoding as RawEncoding
    from tokenizers import Tokenizer as RawTokenizer

    from shapetrace.text.tokenizer import Side, Tokenizer

FILE = "tokenizer.json"
Choice: TypeAlias = Literal["auto", "bytes"]
"""Which tokenizer is meant: the model's own, or bytes whatever it has."""
CHOICES: tuple[Choice, ...] = get_args(Choice)

# Names in use where no file beside tokenizer.json says which token is which.
_USUAL = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>"),
    "bos": ("<s>", "<bos>", "[CLS]", "<|begin_of_text|>"),
    "eos": ("</s>", "<eos>", "[SEP]", "<|end_of_text|>", "<|endoftext|>"),
    "mask": ("<mask>", "[MASK]"),
    "unk": ("<unk>", "[UNK]"),
}
_UNREAD = frozenset(
    {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "spiece.model", "tiktoken.model"}
)
"""Files of tokenizers in other forms, to be named where they lie beside a model."""
_MOST_MEBIBYTES = 256

_BESIDE = ("tokenizer_config.json", "special_tokens_map.json")


class JsonTokenizer:
    """A ``tokenizer.json`` of any model the library knows: BPE, WordPiece, Unigram.

    Padding and truncation that the file asks for are left out: they belong to the batch.
    """

    def __init__(
        self, raw: RawTokenizer, name: str, named: Mapping[str, str | int] | None = None
    ) -> None:
        raw.no_padding()
        raw.no_truncation()
        self._raw = raw
        self._name = name
        self._vocabulary = raw.get_vocab(with_added_tokens=True)
        # Ids may have gaps, so the count of tokens can be too few.
        self._vocab_size = max(self._vocabulary.values(), default=-1) + 1
        self._special = SpecialIds(**{role: self._find(role, named or {}) for role in _USUAL})
        self._byte_of = _byte_alphabet() if "ByteLevel(" in repr(raw.decoder) else None

    @property
    def name(self) -> str:
        """The file."""
        return self._name

    @property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return self._vocab_size

    @property
    def special(self) -> SpecialIds:
        """The ids that stand for no text, as the files beside it or the usual names say."""
        return self._special

    def encode(
        self,
        text: str,
        *,
        special: bool = True,
        max_length: int | None = None,
        side: Side = "right",
    ) -> Encoding:
        """A text's tokens and ids; see `Tokenizer.encode`."""
        check_text(text)
        around = self._raw.num_special_tokens_to_add(is_pair=False) if special else 0
        check_room(max_length, around)
        raw: RawEncoding = self._raw.encode(text, add_special_tokens=False)
        if not raw.ids:
            raise ShapetraceError(
                f"the text {text!r:.40} has no tokens in {self._name}; give another text"
            )
        if max_length is not None:
            raw.truncate(max_length - around, direction=side)
        whole = self._raw.post_process(raw, None, special)
        return Encoding(tuple(whole.ids), tuple(map(self._show, whole.tokens)))

    def id_of(self, token: str) -> int | None:
        """The id of a token by its name in the file."""
        return self._vocabulary.get(token)

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of some ids; see `Tokenizer.decode`."""
        check_ids(ids, self._vocab_size)
        return self._raw.decode(list(ids), skip_special_tokens=skip_special)

    def _show(self, token: str) -> str:
        """A token as people read it: byte-level BPE writes bytes as stand-in letters."""
        if self._byte_of is None or not all(letter in self._byte_of for letter in token):
            return token
        data = bytes(self._byte_of[letter] for letter in token)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return "".join(map(show_byte, data))
        return "".join(map(_show_character, text))

    def _find(self, role: str, named: Mapping[str, str | int]) -> int | None:
        value = named.get(role)
        if isinstance(value, int):
            return value if value < self._vocab_size else None
        names = _USUAL[role] if value is None else (value,)
        return next((self._vocabulary[name] for name in names if name in self._vocabulary), None)


def load_tokenizer(path: str | os.PathLike[str]) -> JsonTokenizer:
    """The tokenizer of a ``tokenizer.json``, or of the folder that holds one.

    Which token begins, ends or pads a sequence is read from the files beside it, where
    they are there (``tokenizer_config.json``, ``special_tokens_map.json``, ``config.json``).

    Args:
        path: The file or the folder.

    Raises:
        ShapetraceError: If it cannot be read, or is no tokenizer.
    """
    from tokenizers import Tokenizer as RawTokenizer  # noqa: PLC0415 - only those who need it pay

    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    try:
        text = read_text(file, _MOST_MEBIBYTES)
    except OSError as error:
        raise ShapetraceError(
            f"cannot read tokenizer {file}: {error.strerror or error}; give a {FILE} or the folder that holds one"
        ) from error
    except UnicodeDecodeError as error:
        raise _broken(file, "it is not text in UTF-8") from error
    try:
        raw = RawTokenizer.from_str(text)
    except Exception as error:  # the library raises no narrower one
        raise _broken(file, str(error)) from error
    return JsonTokenizer(raw, str(file), _read_names(file.parent))


def tokenizer_for(
    source: str | os.PathLike[str] | None, vocab_size: int, choice: Choice = "auto"
) -> Tokenizer:
    """The tokenizer that lies with a model; the byte-level one for a model that has none.

    A model that somebody trained has seen ids that its own tokenizer made: bytes would be
    other ids, and the model would answer a text that nobody wrote. So it is refused unless
    bytes are asked for. What we save ourselves without a ``tokenizer.json`` learned bytes.

    Args:
        source: The model's folder, or its ``config.json``; anything else has none with it.
        vocab_size: The model's own vocabulary.
        choice: ``auto``, or ``bytes`` for bytes whatever lies there.

    Raises:
        ShapetraceError: If there is a broken one, none that can be read beside a model that
            others trained, or `vocab_size` is too small for bytes.
    """
    if source is None or choice == "bytes":
        return ByteTokenizer(vocab_size)
    path = Path(source)
    folder = path.parent if path.name == "config.json" else path
    if (folder / FILE).is_file():
        return load_tokenizer(folder)
    if _is_others(folder):
        raise ShapetraceError(_missing(folder))
    return ByteTokenizer(vocab_size)


def _is_others(folder: Path) -> bool:
    """Whether a model's folder was not written by us."""
    config = _read_object(folder / "config.json")
    return bool(config) and config.get("model_type") != "shapetrace"


def _missing(folder: Path) -> str:
    """What is missing, and what lies there instead."""
    there = sorted(path.name for path in folder.iterdir() if path.name in _UNREAD)
    unread = f" ({' and '.join(there)} cannot be read)" if there else ""
    return (
        f"{folder} has no {FILE}{unread}, so what ids its text becomes is not known; "
        f"put the model's {FILE} there, or read text as bytes with --tokenizer bytes"
    )


def _read_names(folder: Path) -> dict[str, str | int]:
    """Which token plays which role, by the files beside tokenizer.json; the first one wins."""
    roles: dict[str, str | int] = {}
    aliases = {"bos": ("bos_token", "cls_token"), "eos": ("eos_token", "sep_token")}
    for name in _BESIDE:
        content = _read_object(folder / name)
        for role in _USUAL:
            for key in aliases.get(role, (f"{role}_token",)):
                value = content.get(key)
                value = value.get("content") if isinstance(value, dict) else value
                if isinstance(value, str):
                    roles.setdefault(role, value)
    config = _read_object(folder / "config.json")
    for role in _USUAL:
        if type(config.get(f"{role}_token_id")) is int:
            roles.setdefault(role, config[f"{role}_token_id"])
    return roles


def _read_object(file: Path) -> dict[str, Any]:
    """A JSON object, or an empty one where the file is missing: it is only beside the point."""
    try:
        content = json.loads(read_text(file, _MOST_MEBIBYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _broken(file, str(error)) from error
    return content if isinstance(content, dict) else {}


def _show_character(character: str) -> str:
    """A character, or its bytes where it would not show: a line break, say."""
    return character if character.isprintable() else "".join(map(show_byte, character.encode()))


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE's stand-in letter for each byte, from letter to byte.

    Printable Latin-1 stands for itself, and the other bytes, in order, for the letters
    from U+0100 on (Radford et al. 2019, section 2.2, and the code published with it).
    """
    themselves = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in themselves]
    letters = [chr(byte) for byte in themselves] + [
        chr(0x100 + place) for place in range(len(others))
    ]
    return dict(zip(letters, themselves + others, strict=True))


def _broken(file: Path, reason: str) -> ShapetraceError:
    return ShapetraceError(
        f"{file} is broken: {' '.join(reason.split())}; download it again, or give another"
    )
