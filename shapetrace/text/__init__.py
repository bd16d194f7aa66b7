"""Text to tokens to ids, and back."""

from shapetrace.text.batch import Batch, encode_batch, pad_rows
from shapetrace.text.bytelevel import ByteTokenizer
from shapetrace.text.tokenizer import Encoding, Side, SpecialIds, Tokenizer, check_ids
from shapetrace.text.tokenizer_json import JsonTokenizer, load_tokenizer, tokenizer_for

__all__ = [
    "Batch",
    "ByteTokenizer",
    "Encoding",
    "JsonTokenizer",
    "Side",
    "SpecialIds",
    "Tokenizer",
    "check_ids",
    "encode_batch",
    "load_tokenizer",
    "pad_rows",
    "tokenizer_for",
]
