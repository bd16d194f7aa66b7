"""`shapetrace forward` from start to end."""

import csv
import io
import json

import pytest

SPEC = {
    "token_ids": ("B n", [2, 13]),
    "x": ("B n d_model", [2, 13, 32]),
    "q": ("B h n d_k", [2, 4, 13, 8]),
    "k": ("B h n d_k", [2, 4, 13, 8]),
    "v": ("B h n d_k", [2, 4, 13, 8]),
    "scores": ("B h n n", [2, 4, 13, 13]),
    "head_output": ("B h n d_k", [2, 4, 13, 8]),
    "concat": ("B n d_model", [2, 13, 32]),
    "ffn_hidden": ("B n d_ff", [2, 13, 64]),
    "logits": ("B n vocab_size", [2, 13, 256]),
}
TEXTS = ("--text", "dog bites man", "--text", "a cat")


def as_json(command, *arguments):
    code, out, err = command("forward", *arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_the_specs_tensors_stand_in_the_table(command):
    code, out, err = command("forward", "--config", "tiny-decoder", *TEXTS)
    assert (code, err) == (0, "")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    for name, (dims, shape) in SPEC.items():
        start = f"{name} {dims} {' '.join(map(str, shape))} "
        assert any(row.startswith(start) for row in rows), start
    assert any(row.startswith("blocks.0 ... x2") for row in rows)


def test_the_specs_tensors_stand_in_the_json(command):
    rows = as_json(command, "--config", "tiny-decoder", *TEXTS)["rows"]
    for name, (dims, shape) in SPEC.items():
        assert {"dims": dims, "shape": shape} in [
            {"dims": row["dims"], "shape": row["shape"]} for row in rows if row["name"] == name
        ]


def test_totals_agree_with_the_closed_form(command):
    totals = as_json(command, "--config", "tiny-decoder", *TEXTS)["totals"]
    B, n, d, h, d_k, d_ff, vocab, layers = 2, 13, 32, 4, 8, 64, 256, 2
    attention = 2 * B * n * d * (4 * d) + 2 * 2 * B * h * n * n * d_k
    feed_forward = 2 * 2 * B * n * d * d_ff
    head = 2 * B * n * d * vocab
    assert totals["flops"] == layers * (attention + feed_forward) + head
    assert totals["flops_by_part"]["attention"] == layers * attention
    assert totals["flops_by_part"]["feed-forward"] == layers * feed_forward
    assert totals["flops_by_part"]["head"] == head
    weights = 4 * (d * d + d) + d * d_ff + d_ff + d_ff * d + d + 4 * d
    assert totals["parameters"] == vocab * d + 512 * d + layers * weights + 2 * d
    assert totals["parameter_bytes"] == 4 * totals["parameters"]
    assert totals["unmodelled"] == {}


def test_fused_attention_costs_the_same_and_makes_no_scores(command):
    explicit = as_json(command, "--config", "tiny-decoder", *TEXTS)
    fused = as_json(command, "--config", "tiny-decoder", *TEXTS, "--attention", "fused")
    assert fused["totals"]["flops"] == explicit["totals"]["flops"]
    assert not [row for row in fused["rows"] if row["name"] == "scores"]


def test_meta_says_what_a_real_run_says(command):
    real = as_json(command, "--config", "tiny-decoder", *TEXTS)
    meta = as_json(command, "--config", "tiny-decoder", *TEXTS, "--device", "meta")
    keys = ("path", "name", "dims", "shape", "dtype", "bytes", "flops", "line")
    assert [[row[key] for key in keys] for row in meta["rows"]] == [
        [row[key] for key in keys] for row in real["rows"]
    ]
    assert meta["totals"]["flops"] == real["totals"]["flops"]
    assert meta["totals"]["parameters"] == real["totals"]["parameters"]


@pytest.mark.slow
def test_a_model_far_larger_than_the_machine(command):
    totals = as_json(command, "--config", "llama-3.1-405b", "--device", "meta", "--seq", "8")[
        "totals"
    ]
    assert totals["parameters"] == 405_853_388_800


def test_what_does_not_fit_is_refused_before_it_starts(command):
    code, out, err = command("forward", "--config", "llama-3.1-405b", "--seq", "8")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "llama-3.1-405b needs 1,623,4" in err
    assert "use --device meta" in err


def test_trained_weights_and_their_tokenizer(command, stories):
    document = as_json(command, "--config", stories, "--text", "Once upon a time")
    assert document["totals"]["parameters"] == 260_032
    assert [token for token, _ in document["tokens"][0]] == [
        "<s>",
        "▁Once",
        "▁upon",
        "▁a",
        "▁time",
    ]
    k = next(row for row in document["rows"] if row["name"] == "k")
    assert (k["dims"], k["shape"]) == ("B h_kv n d_k", [1, 4, 5, 8])
    assert document["environment"]["weights"] == str(stories)


def test_an_encoder_decoder_reads_one_text_and_writes_another(command):
    document = as_json(
        command, "--config", "tiny-encoder-decoder", "--text", "abc", "--target-text", "hallo"
    )
    assert document["sizes"] == {"B": 1, "m": 3, "n": 5}
    scores = {row["dims"] for row in document["rows"] if row["name"] == "scores"}
    assert "B h n m" in scores


def test_a_missing_target_is_the_text_again_and_said(command):
    document = as_json(command, "--config", "tiny-encoder-decoder", "--text", "abc")
    assert document["sizes"] == {"B": 1, "m": 3, "n": 3}
    assert "no target text was given: the text itself is the target" in document["notes"]


def test_random_ids_are_the_same_for_the_same_seed():
    from shapetrace.api.transformer.inputs import random_inputs  # noqa: PLC0415
    from shapetrace.model import ModelConfig  # noqa: PLC0415

    config = ModelConfig.from_preset("tiny-decoder")
    ids = [random_inputs(config, 2, 5, None, seed).source.ids for seed in (1, 1, 2)]
    assert ids[0] == ids[1] != ids[2]


def test_the_callers_random_state_is_left_alone(command):
    import torch  # noqa: PLC0415

    before = torch.get_rng_state()
    command("forward", "--config", "tiny-decoder", "--seed", "7")
    assert torch.equal(torch.get_rng_state(), before)


def test_chinese(command):
    _, out, _ = command("forward", "--config", "tiny-decoder", *TEXTS, "--lang", "zh")
    for words in ("命名形状", "每个头内 token 两两的相关分数", "激活峰值", "约定"):
        assert words in out


@pytest.mark.parametrize(
    ("suffix", "start"), [("json", "{"), ("csv", "path,name"), ("md", "- **configuration")]
)
def test_the_suffix_decides_the_format(command, tmp_path, suffix, start):
    target = tmp_path / f"out.{suffix}"
    assert command("forward", "--config", "tiny-decoder", "-o", target) == (0, "", "")
    assert target.read_text(encoding="utf-8").startswith(start)
    assert list(tmp_path.iterdir()) == [target]


def test_csv_is_unfolded_unless_asked(command):
    def paths(*extra):
        _, out, _ = command("forward", "--config", "tiny-decoder", "--format", "csv", *extra)
        return {row["path"].split(".attention")[0] for row in csv.DictReader(io.StringIO(out))}

    assert {"blocks.0", "blocks.1"} <= paths()
    assert "blocks.1" not in paths("--layers", "fold")


@pytest.mark.parametrize("level", ["modules", "ops"])
def test_levels(command, level):
    rows = as_json(command, "--config", "tiny-decoder", "--level", level)["rows"]
    kinds = {row["kind"] for row in rows}
    assert kinds == ({"op"} if level == "ops" else {"module", "function"})


def test_a_configuration_file(command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'kind = "decoder"\nlayers = 1\nd_model = 16\nh = 4\nh_kv = 2\nvocab_size = 256\n'
    )
    document = as_json(command, "--config", path, "--set", "h_kv=1", "--text", "hi")
    k = next(row for row in document["rows"] if row["name"] == "k")
    assert (k["dims"], k["shape"]) == ("B h_kv n d_k", [1, 1, 2, 4])


def test_save_and_report_show_the_same(command, tmp_path):
    trace = tmp_path / "x.trace"
    _, shown, _ = command("forward", "--config", "tiny-decoder", *TEXTS, "--save", trace)
    code, again, err = command("report", trace)
    assert (code, err) == (0, "")
    assert again == shown
