"""`shapetrace attention` from start to end."""

import csv
import io
import json

import pytest
import torch
from rich.cells import cell_len

from shapetrace.model import ModelConfig, build, from_pretrained
from shapetrace.model.training.checkpoint import save_checkpoint
from shapetrace.report import Canvas
from shapetrace.report.attention import AttentionView, Layer, as_table

TEXT = "Once upon a time"


def test_weights_are_those_of_the_explicit_pass(command, stories):
    code, out, err = command("attention", "--config", stories, "--text", TEXT, "--format", "json")
    assert code == 0, err
    found = json.loads(out)
    assert [layer["path"] for layer in found["layers"]] == [
        f"blocks.{n}.attention" for n in range(5)
    ]
    config = ModelConfig.from_file(stories).replaced({"attention": "explicit"})
    model = from_pretrained(stories, config)
    # Layer 0 by hand: its input is the normalised embedding.
    ids = torch.tensor([[1, 403, 407, 261, 378]])
    with torch.no_grad():
        x = model.embedding(ids)
        a = model.blocks[0].attention
        y = model.blocks[0].attention_norm(x)
        cosines, sines = model.rotary(x)
        q = (y @ a.wq.T).view(1, 5, 8, 8).transpose(1, 2)
        k = (y @ a.wk.T).view(1, 5, 4, 8).transpose(1, 2)
        q = q * cosines + q.roll(4, -1) * sines
        k = (k * cosines + k.roll(4, -1) * sines).repeat_interleave(2, dim=1)
        scores = q @ k.transpose(-2, -1) / 8**0.5
        future = torch.ones(5, 5).triu(1).bool()
        wanted = scores.masked_fill(future, float("-inf")).softmax(-1)
    layer = found["layers"][0]
    torch.testing.assert_close(torch.tensor(layer["weights"]), wanted[0], atol=1e-5, rtol=0)
    assert torch.tensor(layer["visible"]).equal(~future)
    sums = torch.tensor(layer["sums"])
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)


def test_a_head_is_a_table_with_the_future_marked(command, stories, monkeypatch):
    code, out, _ = command(
        "attention", "--config", stories, "--text", TEXT, "--layer", 1, "--head", 2
    )
    assert code == 0
    lines = out.splitlines()
    rows = lines[2:7]
    mark = "\u00d7" if "\u00d7" in out else "x"
    assert [line.count(mark) for line in rows] == [4, 3, 2, 1, 0]
    assert all(line.endswith("1.0000") for line in rows)
    assert len({cell_len(line) for line in rows}) == 1


def test_a_token_is_a_bar_per_token(command, stories):
    code, out, _ = command(
        "attention", "--config", stories, "--text", TEXT, "--layer", 1, "--query", "upon"
    )
    assert code == 0
    rows = out.splitlines()[1:-1]
    assert len(rows) == 5
    weights = [float(line.split()[2]) for line in rows]
    assert sum(weights) == pytest.approx(1, abs=3e-4)
    assert weights[3:] == [0, 0]
    assert out.splitlines()[-1] == "sum 1.0000"


def test_csv_has_a_line_per_weight(command):
    code, out, _ = command(
        "attention", "--config", "tiny-decoder", "--text", "abcd", "--format", "csv"
    )
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert len(rows) == 2 * 4 * 4 * 4
    assert {row["visible"] for row in rows if int(row["key"]) > int(row["query"])} == {"False"}


def test_self_and_cross_of_an_encoder_decoder(command):
    code, out, _ = command(
        "attention", "--config", "tiny-encoder-decoder", "--text", "ab", "--target-text", "xyz",
        "--layer", 0, "--format", "json",
    )  # fmt: skip
    assert code == 0
    found = {layer["path"]: layer for layer in json.loads(out)["layers"]}
    assert found["encoder.blocks.0.attention"]["queries"] == ["a", "b"]
    assert found["decoder.blocks.0.attention"]["queries"] == ["x", "y", "z"]
    cross = found["decoder.blocks.0.cross_attention"]
    assert (cross["kind"], cross["queries"], cross["keys"]) == (
        "cross",
        ["x", "y", "z"],
        ["a", "b"],
    )


def test_wide_characters_line_up():
    tokens = ("狗", "咬人", "dog", "a very long token indeed 中文中文")
    weights = (tuple(tuple(1 / (q + 1) if k <= q else 0.0 for k in range(4)) for q in range(4)),)
    seen = tuple(tuple(k <= q for k in range(4)) for q in range(4))
    for query in (None, 3):
        layer = Layer("blocks.0.attention", False, tokens, tokens, weights, seen, query)
        view = AttentionView("m", (layer,), 0)
        lines = as_table(view, Canvas(80, unicode=True)).splitlines()
        rows = lines[2:6] if query is None else [line[: line.rindex(".")] for line in lines[1:5]]
        starts = {cell_len(line) for line in rows} if query is None else None
        assert starts is None or len(starts) == 1


def test_a_long_text_is_windowed(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = command(
        "attention", "--config", "tiny-decoder", "--text", "x" * 200, "--layer", 0
    )
    assert code == 0
    assert all(cell_len(line) <= 90 for line in out.splitlines())
    assert "/ 200" in out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--layer", "9"), "--layer 9: the model has layers 0 to 1"),
        (("--head", "4"), "--head 4: the model has heads 0 to 3"),
        (("--query", "z"), "--query 'z' is no token of the text"),
        (("--text", ""), "the text is empty"),
        (("--target-text", "x"), "--target-text is for encoder-decoder models"),
    ],
)
def test_bad_input_is_one_line(command, more, words):
    code, out, err = command("attention", "--config", "tiny-decoder", "--text", "abc", *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_token_is_sought_in_the_text_that_each_layer_reads_for(command):
    pair = ("--config", "tiny-encoder-decoder", "--text", "a", "--target-text", "xyz")
    code, out, err = command("attention", *pair, "--layer", 0, "--query", "z", "--format", "json")
    assert code == 0, err
    layers = json.loads(out)["layers"]
    assert [layer["path"].split(".")[0] for layer in layers] == ["decoder", "decoder"]
    assert all(layer["queries"] == ["z"] for layer in layers)
    code, out, err = command("attention", *pair, "--layer", 0, "--query", "a")
    assert code == 0, err
    assert out.startswith("encoder.blocks.0.attention, mean of all heads: read by 0 a\n")
    assert out.count("read by") == 1


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize("query", [(), ("--query", "150")])
def test_no_line_is_wider_than_the_terminal(command, monkeypatch, columns, query):
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = command(
        "attention", "--config", "tiny-encoder-decoder", "--text", "x\n\u72d7" * 40, "--layer", 0, *query
    )  # fmt: skip
    assert code == 0
    assert max(map(cell_len, out.splitlines())) <= int(columns)
    if not query:  # numbers of three digits stand apart
        assert any(
            line.split() and line.split()[-2:] == ["198", "199"] for line in out.splitlines()
        )


def test_weights_that_are_no_numbers_are_no_picture(command, tmp_path):
    model = build(ModelConfig.from_preset("tiny-decoder"))
    with torch.no_grad():
        model.blocks[1].attention.wq.fill_(float("nan"))
    save_checkpoint(tmp_path / "m", model)
    for form in ("table", "json", "csv"):
        code, out, err = command(
            "attention", "--config", tmp_path / "m", "--text", "abc", "--format", form
        )
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "are the weights finite?" in err
