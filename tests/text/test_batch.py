"""Padding, truncation, and the mask that goes with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.errors import ShapetraceError
from shapetrace.text import ByteTokenizer, encode_batch, pad_rows

BYTES = ByteTokenizer()
PAD = BYTES.special.pad
texts = st.lists(st.text(min_size=1), min_size=1, max_size=5)
sides = st.sampled_from(["left", "right"])


def test_shorter_texts_are_padded_on_the_right():
    batch = encode_batch(BYTES, ["abc", "d"])
    assert batch.ids == [[97, 98, 99], [100, PAD, PAD]]
    assert batch.mask == [[1, 1, 1], [1, 0, 0]]
    assert batch.shape == (2, 3)
    assert batch.tokens == ((("a", 97), ("b", 98), ("c", 99)), (("d", 100),))


def test_or_on_the_left_to_a_length():
    batch = encode_batch(BYTES, ["abc", "d"], pad="left", length=4)
    assert batch.ids == [[PAD, 97, 98, 99], [PAD, PAD, PAD, 100]]
    assert batch.mask == [[0, 1, 1, 1], [0, 0, 0, 1]]


@pytest.mark.parametrize(("side", "expected"), [("right", [97, 98]), ("left", [98, 99])])
def test_longer_texts_are_cut_when_asked(side, expected):
    batch = encode_batch(BYTES, ["abc", "d"], max_length=2, truncate=side)
    assert batch.ids == [expected, [100, PAD]]
    assert batch.mask == [[1, 1], [1, 0]]


@given(texts, sides, sides, st.none() | st.integers(1, 20))
def test_the_mask_picks_out_the_text(texts, pad, truncate, limit):
    batch = encode_batch(BYTES, texts, pad=pad, truncate=truncate, max_length=limit)
    assert {len(row) for row in (*batch.ids, *batch.mask)} == {batch.shape[1]}
    for text, ids, mask in zip(texts, batch.ids, batch.mask, strict=True):
        real = [index for index, keep in zip(ids, mask, strict=True) if keep]
        assert real == list(BYTES.encode(text, max_length=limit, side=truncate).ids)
        assert {index for index, keep in zip(ids, mask, strict=True) if not keep} <= {PAD}


def test_rows_are_padded_without_a_tokenizer():
    assert pad_rows([[1], [2, 3]], 9) == ([[1, 9], [2, 3]], [[1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {}, "there is no text; give at least one"),
        ([""], {}, "the text is empty; give at least one character"),
        (["a", ""], {}, "text 2 of 2: the text is empty; give at least one character"),
        (
            ["a", "four"],
            {"max_length": 3},
            "text 2 of 2: the text has 4 tokens, but at most 3 fit; shorten it, or have it truncated",
        ),
        (
            ["four"],
            {"length": 3, "max_length": 9},
            "the text has 4 tokens, but at most 3 fit; shorten it, or have it truncated",
        ),
        (
            ["az"],
            {"vocab_size": 100},
            (
                "id 122 at place 1 is outside the vocabulary of 100; "
                "use the tokenizer that belongs to the model, or set a larger vocab_size"
            ),
        ),
    ],
)
def test_what_makes_no_batch(texts, options, message):
    with pytest.raises(ShapetraceError) as caught:
        encode_batch(BYTES, texts, **options)
    assert str(caught.value) == message
