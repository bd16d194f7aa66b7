"""`shapetrace generate` from start to end."""

import csv
import json
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len

STORY = "Once upon a time"


def test_text_then_table(command, stories):
    code, out, err = command(
        "generate", "--config", stories, "--prompt", STORY, "--max-new-tokens", 32
    )
    assert code == 0, err
    assert out.startswith(f"{STORY}, there was a little girl named Lily. She loved to play")
    assert "\x1b" not in out
    assert "prefill: n = 5, m = 5" in out
    assert "decode x31: n = 1, m = 6 ... 36" in out
    rows = [line.split() for line in out.splitlines()]
    assert any(row[:5] == ["q", "B", "h", "n", "d_k"] for row in rows)
    assert any(row[:5] == ["k", "B", "h_kv", "m", "d_k"] for row in rows)
    assert any(row[:9] == ["scores", "B", "h", "n", "m", "1", "8", "1", "6...36"] for row in rows)
    assert "saved by the cache" in out
    assert "tokens per second" in out


def test_json_has_samples_steps_and_totals(command, stories):
    code, out, _ = command(
        "generate", "--config", stories, "--prompt", STORY, "--prompt", "The cat", "--format", "json",
        "--max-new-tokens", 20,
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert [sample["prompt"] for sample in found["samples"]] == [STORY, "The cat"]
    assert found["samples"][0]["text"].startswith(", there was a little girl named Lily.")
    assert all(len(sample["token_ids"]) == 20 for sample in found["samples"])
    config, steps = found["config"], found["steps"]
    assert [step["n"] for step in steps] == [5] + [1] * 19
    assert [step["m"] for step in steps] == list(range(5, 25))
    for step in steps:
        wanted = 2 * config["layers"] * 2 * config["h_kv"] * step["m"] * config["d_k"] * 4
        assert step["kv_cache_bytes"] == wanted
    for step in steps[1:]:
        assert step["flops"] == decode_flops(config, 2, step["m"])
    totals = found["totals"]
    assert totals["flops"] == sum(step["flops"] for step in steps)
    assert totals["kv_cache_bytes"] == steps[-1]["kv_cache_bytes"]
    assert totals["flops_without_cache"] > totals["flops"]
    assert totals["flops_saved"] == totals["flops_without_cache"] - totals["flops"]


def decode_flops(c, B, m):
    """The closed form for one new token: matrices, scores and values, gated feed-forward, head."""
    matrices = c["d_model"] * c["d_k"] * (2 * c["h"] + 2 * c["h_kv"])
    attention = 2 * B * matrices + 4 * B * c["h"] * m * c["d_k"]
    feedforward = 2 * B * 3 * c["d_model"] * c["d_ff"]
    return c["layers"] * (attention + feedforward) + 2 * B * c["d_model"] * c["vocab_size"]


def test_without_the_cache_the_same_text_for_more_work(command, stories):
    results = {}
    for option in ("--cache", "--no-cache"):
        code, out, _ = command(
            "generate", "--config", stories, "--prompt", STORY, option, "--format", "json",
            "--max-new-tokens", 8,
        )  # fmt: skip
        assert code == 0
        results[option] = json.loads(out)
    with_, without = results["--cache"], results["--no-cache"]
    assert with_["samples"] == without["samples"]
    # The ordinary forward scores every position, a step without the cache needs but the last.
    c = with_["config"]
    others = sum(step["m"] - 1 for step in with_["steps"])
    head = 2 * c["d_model"] * c["vocab_size"] * others
    assert without["totals"]["flops"] == with_["totals"]["flops_without_cache"] + head
    assert without["totals"]["flops_saved"] is None
    assert without["totals"]["kv_cache_bytes"] == 0


def test_same_seed_same_text(command):
    def text(seed):
        code, out, _ = command(
            "generate", "--config", "tiny-decoder", "--prompt", "ab", "--temperature", "0.9",
            "--seed", seed, "--format", "json", "--no-trace", "--samples", 2,
        )  # fmt: skip
        assert code == 0
        return json.loads(out)["samples"]

    assert text(3) == text(3)
    assert text(3) != text(4)
    assert text(3)[0] != text(3)[1]


def test_text_only_is_nothing_but_text(command, stories):
    code, out, _ = command(
        "generate", "--config", stories, "--prompt", STORY, "--text-only", "--max-new-tokens", 6
    )
    assert code == 0
    assert out == f"{STORY}, there was a little g\n"


def test_a_stop_token_ends_the_text(command, stories):
    code, out, _ = command(
        "generate", "--config", stories, "--prompt", STORY, "--text-only", "--stop", ".",
        "--max-new-tokens", 60,
    )  # fmt: skip
    assert code == 0
    assert out == f"{STORY}, there was a little girl named Lily.\n"


def test_an_encoder_decoder_writes(command):
    code, out, err = command(
        "generate", "--config", "tiny-encoder-decoder", "--prompt", "dog", "--max-new-tokens", 5,
        "--format", "json",
    )  # fmt: skip
    assert code == 0, err
    steps = json.loads(out)["steps"]
    assert [(step["kind"], step["n"], step["m"]) for step in steps[:3]] == [
        ("encode", 3, 3),
        ("prefill", 1, 1),
        ("decode", 1, 2),
    ]


def test_a_source_and_its_target_stand_apart(command, tmp_path):
    given = ("generate", "--config", "tiny-encoder-decoder", "--prompt", "dog", "--text-only",
             "--max-new-tokens", 2)  # fmt: skip
    code, out, err = command(*given)
    assert code == 0, err
    assert out.startswith("dog => ")
    assert command(*given, "-o", tmp_path / "text")[0] == 0
    assert (tmp_path / "text").read_text(encoding="utf-8") == out


@pytest.mark.parametrize("columns", [60, 80])
def test_the_table_fits_a_narrow_terminal(command, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = command(
        "generate", "--config", "tiny-decoder", "--prompt", "dog", "--max-new-tokens", 12
    )
    assert code == 0, err
    table = out[out.index("\npass ") :]
    assert max(map(cell_len, table.splitlines())) <= columns


def test_the_shipped_model_speaks(command):
    model = Path(__file__).parents[3] / "examples/scripture/model"
    code, out, _ = command(
        "generate", "--config", model, "--prompt", "And the king said unto", "--text-only",
        "--max-new-tokens", 40,
    )  # fmt: skip
    assert code == 0
    words = out.lower().replace(",", " ").replace(".", " ").split()
    known = set(
        (model.parent / "text.txt").read_text().lower().replace(",", " ").replace(".", " ").split()
    )
    assert sum(word in known for word in words) > 0.8 * len(words) > 10


def test_a_saved_trace_is_shown_whole(command, tmp_path):
    path = tmp_path / "t.trace"
    code, _, err = command(
        "generate", "--config", "tiny-decoder", "--prompt", "ab", "--max-new-tokens", 9,
        "--save", path,
    )  # fmt: skip
    assert code == 0, err
    code, out, err = command("report", path, "--format", "json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    scores = [row["shape"] for row in rows if row["name"] == "scores" and row["shape"][2] == 1]
    assert {shape[3] for shape in scores} == set(range(3, 11))


SPEAKS = ("generate", "--config", "tiny-decoder", "--prompt", "ab", "--prompt", "|a", "--seed", 3,
          "--max-new-tokens", 6)  # fmt: skip


@pytest.fixture
def spoken(command):
    code, out, err = command(*SPEAKS, "--format", "json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("suffix", [False, True])
def test_csv_has_the_numbers_of_json(command, spoken, tmp_path, suffix):
    path = tmp_path / "passes.csv"
    given = ("-o", path) if suffix else ("--format", "csv")
    code, out, err = command(*SPEAKS, *given)
    assert code == 0, err
    rows = list(csv.DictReader(StringIO(path.read_text() if suffix else out)))
    keys = ("kind", "n", "m", "flops", "kv_cache_bytes")
    assert [[row[key] for key in ("pass", *keys)] for row in rows] == [
        [str(number), *(str(step[key]) for key in keys)]
        for number, step in enumerate(spoken["steps"], 1)
    ]
    assert all(float(row["seconds"]) > 0 for row in rows)


def test_markdown_has_the_numbers_of_json(command, spoken):
    code, out, err = command(*SPEAKS, "--format", "md")
    assert code == 0, err
    lines = out.splitlines()
    tables = [[cell.strip() for cell in line.split(" | ")] for line in lines if " | " in line]
    passes = {row[0].removeprefix("| "): row for row in tables}
    first, *others = spoken["steps"]
    assert passes["prefill"][1:4] == ["1", str(first["n"]), str(first["m"])]
    assert number(passes["prefill"][4]) == pytest.approx(first["flops"], rel=5e-3)
    assert number(passes["prefill"][5]) == pytest.approx(first["kv_cache_bytes"], rel=5e-3)
    assert passes["decode"][1:4] == ["5", "1", f"{others[0]['m']} ... {others[-1]['m']}"]
    for column, key in ((4, "flops"), (5, "kv_cache_bytes")):
        least, most = passes["decode"][column].split(" ... ")
        assert number(least) == pytest.approx(others[0][key], rel=5e-3)
        assert number(most) == pytest.approx(others[-1][key], rel=5e-3)
    said = dict(line[2:].split(": ", 1) for line in lines if line.startswith("- **"))
    totals = spoken["totals"]
    assert int(said["**tokens**"].split()[0]) == totals["tokens"] == 12
    assert number(said["**KV cache**"]) == pytest.approx(totals["kv_cache_bytes"], rel=5e-3)
    assert number(said["**FLOPs**"]) == pytest.approx(totals["flops"], rel=5e-3)
    assert number(said["**saved by the cache**"]) == pytest.approx(totals["flops_saved"], rel=5e-3)


UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "FLOP": 1, "kFLOP": 1e3, "MFLOP": 1e6}


def number(text):
    """`82.9 kFLOP (...)` as a number."""
    amount, unit = text.split()[:2]
    return float(amount) * UNITS[unit]


REFUSED = (
    (("--temperature", "0"), "temperature is 0; it must be above 0"),
    (("--temperature", "nan"), "temperature is nan"),
    (("--top-p", "0"), "top-p is 0"),
    (("--top-p", "1.5"), "top-p is 1.5"),
    (("--top-k", "0"), "top-k is 0"),
    (("--greedy", "--top-k", "5"), "--greedy takes the likeliest token"),
    (("--prompt", ""), "prompt is empty"),
    (("--max-new-tokens", "0"), "at least 1 new token"),
    (("--max-new-tokens", "600"), "and the model has 512 (`max_positions`)"),
    (("--prompt", "x" * 513), "the prompt has 513 tokens, and the model 512 positions"),
    (("--stop", "<nonsense>"), "--stop '<nonsense>' is no token of byte-level"),
    (("--stop", ""), "--stop '' is no token"),
    (("--config", "tiny-encoder"), "tiny-encoder is an encoder, which reads and does not write"),
    (("--save", "/nonexistent/t"), "cannot write /nonexistent/t"),
)


@pytest.mark.parametrize(("more", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_line(command, more, words):
    code, out, err = command("generate", "--config", "tiny-decoder", "--prompt", "ab", *more)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_no_torch_for_help(python):
    code = (
        "import sys\nfrom shapetrace.cli import main\n"
        "for name in ('generate', 'train', 'attention'):\n"
        "    try:\n        main([name, '--help'])\n    except SystemExit as end:\n"
        "        assert not end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([python, "-c", code], check=True, stdout=subprocess.DEVNULL)
