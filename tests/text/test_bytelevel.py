"""Text as bytes, against Python's own UTF-8."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.errors import ShapetraceError
from shapetrace.text import ByteTokenizer

BYTES = ByteTokenizer()
texts = st.text(min_size=1)


@given(texts)
def test_any_text_comes_back(text):
    encoding = BYTES.encode(text)
    assert bytes(encoding.ids) == text.encode()
    assert BYTES.decode(encoding.ids) == text
    assert len(encoding.tokens) == len(encoding.ids)


@given(texts)
def test_no_text_has_a_special_id(text):
    special = BYTES.special
    assert not {special.pad, special.bos, special.eos, special.mask} & set(BYTES.encode(text).ids)


@pytest.mark.parametrize(
    "text", ["The cat sat on the mat.", "狗咬人", "人咬狗，不是新闻。", "🙂 ¿qué?"]
)
def test_english_and_chinese(text):
    assert BYTES.decode(BYTES.encode(text).ids) == text


def test_tokens_are_legible():
    assert BYTES.encode("a 狗~\n").tokens == ("a", " ", "<0xE7>", "<0x8B>", "<0x97>", "~", "<0x0A>")


def test_special_ids_are_distinct_and_within_every_vocabulary():
    special = BYTES.special
    ids = [special.pad, special.bos, special.eos, special.mask]
    assert len(set(ids)) == 4
    assert max(ids) < 256
    assert special.unk is None
    assert special.filler() == special.pad


def test_special_ids_leave_no_trace_unless_asked():
    special = BYTES.special
    ids = [special.bos, *b"hi", special.eos, special.pad]
    assert BYTES.decode(ids) == "hi"
    assert BYTES.decode(ids, skip_special=False) == "<bos>hi<eos><pad>"
    assert BYTES.decode([special.mask], skip_special=False) == "<mask>"


@given(st.lists(st.integers(0, 255), max_size=30))
def test_any_bytes_decode(ids):
    """As Python decodes them; a model may choose any id."""
    special = {0xFC, 0xFD, 0xFE, 0xFF}
    runs = "".join(chr(0x110000 - 1) if i in special else chr(i) for i in ids).split(chr(0x10FFFF))
    expected = "".join(run.encode("latin-1").decode(errors="replace") for run in runs)
    assert BYTES.decode(ids) == expected


def test_ids_of_a_larger_vocabulary_decode_to_the_replacement_character():
    assert ByteTokenizer(50257).decode([65, 50256, 66]) == "A\ufffdB"


@pytest.mark.parametrize(("index", "size"), [(256, 256), (-1, 256), (300, 300)])
def test_an_id_outside_the_vocabulary(index, size):
    with pytest.raises(ShapetraceError) as caught:
        ByteTokenizer(size).decode([65, index])
    assert str(caught.value) == (
        f"id {index} at place 1 is outside the vocabulary of {size}; "
        "use the tokenizer that belongs to the model, or set a larger vocab_size"
    )


@given(texts, st.integers(1, 40))
def test_truncation_keeps_one_side(text, length):
    whole = BYTES.encode(text).ids
    assert BYTES.encode(text, max_length=length).ids == whole[:length]
    assert BYTES.encode(text, max_length=length, side="left").ids == whole[-length:]


def test_a_vocabulary_too_small_for_bytes():
    with pytest.raises(ShapetraceError) as caught:
        ByteTokenizer(255)
    assert str(caught.value) == (
        "vocab_size is 255, but text without a tokenizer.json is read as bytes and needs 256; "
        "set vocab_size to at least 256, or give a tokenizer.json"
    )


@pytest.mark.parametrize(
    ("text", "length", "message"),
    [
        ("", None, "the text is empty; give at least one character"),
        (
            "ab\ud83d",
            None,
            "the text holds U+D83D at place 2, which is no character by itself; give text in UTF-8",
        ),
        ("a", 0, "a length of 0 leaves no room for text beside 0 special tokens; allow at least 1"),
    ],
)
def test_what_cannot_be_encoded(text, length, message):
    with pytest.raises(ShapetraceError, match=re.escape(message)):
        BYTES.encode(text, max_length=length)
