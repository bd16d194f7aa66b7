"""`shapetrace train` from start to end."""

import json
import os
import signal
import time

import pytest

TEXT = "the quick brown fox jumps over the lazy dog. " * 20
SMALL = ("--steps", "6", "--batch", "2", "--seq", "16", "--warmup", "1", "--evaluate-every", "3")


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"word{n}\tdrow{n}\n" for n in range(20)))
    return path


def losses(folder):
    return json.loads((folder / "training.json").read_text())["losses"]


def test_a_first_step_is_shown(command, book):
    code, out, err = command("train", "--config", "tiny-decoder", "--data", book, *SMALL)
    assert code == 0, err
    lines = [line.split() for line in out.splitlines()]
    assert ["blocks.0.attention.wq", "...", "x2", "32", "32", "32", "32", "4", "KiB"] in lines
    assert any(line[:2] == ["optimizer", "state"] for line in lines)
    assert "kept for the backward pass" in out
    assert "trained 6 steps on 900 tokens" in out
    assert "held-out loss" in err


def test_json_has_memory_by_kind_and_flops(command, book):
    code, out, err = command(
        "train", "--config", "tiny-decoder", "--data", book, *SMALL, "--format", "json"
    )
    assert code == 0, err
    found = json.loads(out)
    training, totals = found["training"], found["totals"]
    assert training["gradient_bytes"] == training["parameter_bytes"] == 41_728 * 4
    # AdamW keeps two numbers per parameter, and a step count for each of the 36 tensors.
    tensors = len({p["path"] for p in training["parameters"]} - {"head.weight"})
    assert training["optimizer_state_bytes"] == 2 * 41_728 * 4 + 4 * tensors
    # Each product has two of its size in the backward pass.
    assert totals["flops_backward"] == 2 * totals["flops_forward"]
    B, n, d = 2, 16, 32
    block = 2 * B * n * (4 * d * d + 2 * d * 64) + 4 * B * n * n * d
    assert totals["flops_forward"] == 2 * block + 2 * B * n * d * 256
    assert totals["unmodelled"] == {}
    assert all(p["gradient_shape"] == p["shape"] for p in training["parameters"])
    saved = training["saved_for_backward"]
    assert [layer["bytes"] for layer in saved] == sorted((x["bytes"] for x in saved), reverse=True)
    assert {"blocks.0", "blocks.1"} <= {layer["path"] for layer in saved}
    assert training["peak_bytes_beyond_parameters"] > training["saved_for_backward_bytes"]


def test_an_encoder_and_an_encoder_decoder_train(command, book, pairs, tmp_path):
    for config, data in (("tiny-encoder", book), ("tiny-encoder-decoder", pairs)):
        code, _, err = command(
            "train", "--config", config, "--data", data, *SMALL, "--out", tmp_path / config
        )
        assert code == 0, err
    code, out, err = command(
        "generate", "--config", tmp_path / "tiny-encoder-decoder", "--prompt", "word1",
        "--max-new-tokens", 3, "--format", "json",
    )  # fmt: skip
    assert code == 0, err
    assert len(json.loads(out)["samples"]) == 1


def test_a_checkpoint_is_a_model_with_its_tokenizer(command, book, tmp_path):
    out_dir = tmp_path / "model"
    code, _, err = command(
        "train", "--config", "tiny-decoder", "--data", book, *SMALL, "--no-trace", "--vocab", "265",
        "--out", out_dir,
    )  # fmt: skip
    assert code == 0, err
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in out_dir.iterdir()
    }
    code, out, err = command(
        "forward", "--config", out_dir, "--text", "lazy dog", "--format", "json"
    )
    assert code == 0, err
    assert json.loads(out)["config"]["vocab_size"] == 265
    code, out, err = command(
        "generate", "--config", out_dir, "--prompt", "lazy", "--text-only", "--max-new-tokens", 2
    )
    assert code == 0, err
    assert out.startswith("lazy")


def test_resume_has_the_losses_of_a_run_in_one_go(command, book, tmp_path):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    common = ("train", "--config", "tiny-decoder", "--data", book, "--no-trace", *SMALL[2:],
              "--set", "dropout=0.1", "--steps", "6")  # fmt: skip
    assert command(*common, "--out", whole)[0] == 0
    interrupted = interrupt_at(command, common, halves, 3)
    assert interrupted == 130
    assert len(losses(halves)) == 3
    assert command(*common, "--out", halves, "--resume")[0] == 0
    assert losses(halves) == pytest.approx(losses(whole), abs=1e-6)


def interrupt_at(command, common, folder, step):
    """Run as with Ctrl-C after a step."""
    from shapetrace.cli.progress import Bar  # noqa: PLC0415

    show = Bar.step

    def stop(self, progress):
        show(self, progress)
        if progress.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    Bar.step = stop
    try:
        code, _, err = command(*common, "--out", folder)
        assert f"interrupted; checkpoint of step {step}: {folder} (--resume" in err
        return code
    finally:
        Bar.step = show
        signal.signal(signal.SIGINT, handler)


@pytest.mark.slow
def test_ctrl_c_leaves_a_good_checkpoint(started, book, tmp_path):
    folder = tmp_path / "model"
    arguments = ["train", "--config", "tiny-decoder", "--data", book, "--no-trace"]
    arguments += ["--steps", "100000", "--save-every", "1", "--out", folder]
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        process = started(*arguments, stdout=nowhere.fileno(), stderr=nowhere.fileno())
    deadline = time.monotonic() + 60
    while not (folder / "training.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    from shapetrace.model import from_pretrained  # noqa: PLC0415

    from_pretrained(folder)
    assert len(losses(folder)) >= 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_forward_backward_has_the_same_table(command):
    code, out, err = command(
        "forward", "--config", "tiny-encoder-decoder", "--backward", "--format", "json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert found["totals"]["flops_backward"] == 2 * found["totals"]["flops_forward"]
    assert found["training"]["gradient_bytes"] == found["training"]["parameter_bytes"]


def test_the_tables_of_a_backward_pass_in_markdown_in_chinese_and_on_a_narrow_screen(
    command, monkeypatch
):
    run = ("forward", "--config", "tiny-decoder", "--backward")
    _, markdown, _ = command(*run, "--format", "md")
    assert "| blocks.0.attention.wq ... x2 | 32 32 | 32 32 | 4 KiB |" in markdown.splitlines()
    assert "| kept for the backward pass | bytes | largest |" in markdown.splitlines()
    _, chinese, _ = command(*run, "--lang", "zh")
    assert {"为反向传播保留", "优化器状态", "梯度"} <= set(chinese.split())
    monkeypatch.setenv("COLUMNS", "50")
    _, narrow, _ = command(*run)
    assert max(map(len, narrow.splitlines())) <= 50
    assert "?" not in narrow  # a block without a name tells which operator made it


@pytest.mark.slow
def test_gpt2_forward_and_backward_cost_what_was_measured(command):
    code, out, err = command(
        "forward", "--config", "gpt2", "--backward", "--batch", 2, "--seq", 128, "--format", "json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert found["totals"]["flops"] == 193_369_079_808
    # By the allocator's own events and by resident memory.
    peak = found["training"]["peak_bytes_beyond_parameters"] / 2**20
    assert peak == pytest.approx(769.2, rel=0.02)
    blocks = {x["path"]: x["bytes"] for x in found["training"]["saved_for_backward"]}
    assert len({blocks[f"blocks.{n}"] for n in range(12)}) == 1


def test_data_that_cannot_be_is_one_line(command, tmp_path):
    files = {
        "empty.txt": b" \n",
        "short.txt": b"abc",
        "latin.txt": b"caf\xe9",
        "odd.tsv": b"a\tb\nc\n",
        "three.tsv": b"a\tb\tc\n",
        "none.tsv": b"a\t\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    cases = (
        ("tiny-decoder", "gone.txt", "gone.txt: No such file"),
        ("tiny-decoder", "empty.txt", "empty.txt is empty"),
        ("tiny-decoder", "short.txt", "3 tokens to train on, and a sequence needs 65"),
        ("tiny-encoder", "short.txt", "3 tokens to train on, and a sequence needs 65"),
        ("tiny-decoder", "latin.txt", "latin.txt is not UTF-8 (byte 3)"),
        ("tiny-encoder-decoder", "odd.tsv", "odd.tsv, line 2: expected a source, one tab"),
        ("tiny-encoder-decoder", "three.tsv", "line 1: expected a source, one tab and a target"),
        ("tiny-encoder-decoder", "none.tsv", "line 1: expected a source, one tab and a target"),
    )
    for config, name, words in cases:
        code, out, err = command("train", "--config", config, "--data", tmp_path / name)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert words in err


def test_what_cannot_be_resumed_is_one_line(command, book, tmp_path):
    folder = tmp_path / "model"
    common = ("train", "--config", "tiny-decoder", "--data", book, "--no-trace", "--out", folder)
    code, _, err = command(*common, *SMALL, "--resume")
    assert code == 2
    assert "is no checkpoint of a training that can be resumed" in err
    assert command(*common, *SMALL)[0] == 0
    other = tmp_path / "other.txt"
    other.write_text(TEXT + "more")
    cases = (
        ((*common, *SMALL), "holds a checkpoint already; --resume goes on with it"),
        ((*common, *SMALL, "--resume", "--set", "d_ff=96"), "`d_ff` is 96, but"),
        ((*common, *SMALL, "--resume", "--lr", "0.5"), "`lr` is 0.5, but"),
        ((*common, *SMALL, "--resume", "--data", other), "the data differs from what"),
        (("train", "--config", "tiny-decoder", "--data", book, "--resume"), "--resume needs --out"),
    )
    for arguments, words in cases:
        code, _, err = command(*arguments)
        assert (code, err.count("\n")) == (2, 1), err
        assert words in err


def test_a_full_disk_leaves_what_was_saved(command, book, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    common = ("train", "--config", "tiny-decoder", "--data", book, "--no-trace", "--out", folder)
    code, _, err = command(*common, *SMALL, "--save-every", 3)
    assert code == 0, err
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    (folder / "training.json").write_text(
        json.dumps(json.loads(before["training.json"]) | {"step": 3})
    )
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shapetrace.model.training.checkpoint.save_file", full)
    code, _, err = command(*common, *SMALL, "--resume", "--steps", 9)
    assert code == 2
    assert "No space left on device; what was saved before is intact" in err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_an_encoder_without_a_head_cannot_train(command, book):
    code, _, err = command(
        "train", "--config", "tiny-encoder", "--set", "head=none", "--data", book
    )
    assert code == 2
    assert "no head to train" in err


def test_a_vocabulary_that_is_too_small(command, book):
    code, _, err = command("train", "--config", "tiny-decoder", "--data", book, "--vocab", 10)
    assert code == 2
    assert "a vocabulary of 10 is too small" in err


def test_separators_and_marks_of_unicode_are_no_lines(command, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_bytes("\ufeff".encode() + "a\u2028b\tb\x0ba\r\nc\td\n".encode() * 5)
    code, out, err = command(
        "train", "--config", "tiny-encoder-decoder", "--data", pairs, "--no-trace",
        "--steps", 1, "--batch", 2, "--seq", 8,
    )  # fmt: skip
    assert code == 0, err
    # In bytes: a, 3 of the separator, b; b, 1 of the other, a; then c and d.
    assert f"on {5 * (5 + 3 + 1 + 1)} tokens" in out


def test_a_resumed_training_reads_with_the_tokenizer_of_the_checkpoint(command, book, tmp_path):
    common = ("train", "--config", "tiny-decoder", "--data", book, "--no-trace", *SMALL[2:])
    model = ("--out", tmp_path / "model")
    assert command(*common, *model, "--vocab", 270, "--steps", 1)[0] == 0
    code, _, err = command(
        *common, *model, "--set", "vocab_size=270", "--resume", "--steps", 2, "--format", "json"
    )
    assert code == 0, err
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["tokens"] < len(TEXT)  # not read as bytes


@pytest.mark.parametrize("name", ["train", "generate", "forward", "attention"])
def test_a_seed_that_is_too_large_is_one_line(command, book, name):
    seed = str(10**30)
    given = {
        "train": ("--data", book, "--no-trace", *SMALL),
        "generate": ("--prompt", "a"),
    }.get(name, ("--text", "a"))
    code, out, err = command(name, "--config", "tiny-decoder", *given, "--seed", seed)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "seed" in err
    assert seed in err


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_stdout_holds_one_document_and_nothing_else(command, book, tmp_path, form):
    common = ("train", "--config", "tiny-decoder", "--data", book, *SMALL, "--format", form)
    code, out, err = command(*common)
    assert code == 0, err
    assert "trained 6 steps" not in out
    assert "trained 6 steps" in err
    assert command(*common, "-o", tmp_path / "x")[0] == 0
    # The wall time alone may differ.
    assert len((tmp_path / "x").read_text().splitlines()) == len(out.splitlines())


@pytest.mark.parametrize("wanted", ["--save", "-o"])
@pytest.mark.parametrize("without", ["--no-trace", "--resume"])
def test_a_first_step_that_is_not_traced_cannot_be_kept(command, book, tmp_path, wanted, without):
    file, folder = tmp_path / "x.json", tmp_path / "model"
    common = ("train", "--config", "tiny-decoder", "--data", book, *SMALL, "--out", folder)
    code, out, err = command(*common, wanted, file, without)
    assert (code, out, file.exists(), folder.exists()) == (2, "", False, False)
    assert without in err
    assert err.count("\n") == 1


def test_a_traced_training_goes_on_untraced(command, book, tmp_path):
    common = ("train", "--config", "tiny-decoder", "--data", book, *SMALL, "--out", tmp_path / "m")
    assert command(*common)[0] == 0
    code, out, err = command(*common, "--steps", "8", "--resume", "--no-trace")
    assert (code, "trained 8 steps (6 before this run) on" in out) == (0, True), err
    code, out, _ = command(*common, "--steps", "8", "--resume")
    assert (code, out) == (0, f"nothing was left to train\ncheckpoint: {tmp_path / 'm'}\n")


def test_a_training_is_summed_up_in_chinese(command, book, tmp_path):
    common = ("train", "--config", "tiny-decoder", "--data", book, *SMALL, "--lang", "zh")
    code, out, _ = command(*common, "--out", tmp_path / "m")
    assert code == 0
    last = out.splitlines()[-2:]
    assert last[0].startswith("训练了 6 步，数据共 900 个 token：损失 5.")
    assert last[1] == f"检查点: {tmp_path / 'm'}"
    assert "pass=前向、反向与更新" in out


@pytest.mark.parametrize("kind", ["tiny-decoder", "tiny-encoder"])
def test_the_length_of_the_data_is_no_memory_of_a_step(command, tmp_path, kind):
    memory = []
    for copies in (1, 40):
        path = tmp_path / "book.txt"
        path.write_text(TEXT * copies)
        code, out, err = command(
            "train", "--config", kind, "--data", path, *SMALL, "--format", "json"
        )
        assert code == 0, err
        found = json.loads(out)
        training, totals = found["training"], found["totals"]
        memory.append(
            (
                training["saved_for_backward_bytes"],
                training["peak_bytes_beyond_parameters"],
                totals["peak_activation_bytes"],
            )
        )
    assert memory[0] == memory[1]


@pytest.mark.parametrize(
    ("line", "found"),
    [("a", "0 tabs and 1 text"), ("a\t", "1 tab and 1 text"), ("a\tb\tc", "2 tabs and 3 texts")],
)
def test_what_is_wrong_with_a_pair_is_said(command, tmp_path, line, found):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"x\ty\n{line}\n")
    code, _, err = command("train", "--config", "tiny-encoder-decoder", "--data", path)
    assert code == 2
    assert "line 2: expected a source, one tab and a target" in err
    assert f"found {found}" in err


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_checkpoint_is_as_open_as_any_new_file(command, book, tmp_path, mask):
    folder, before = tmp_path / "model", os.umask(mask)
    try:
        code, _, err = command(
            "train",
            "--config",
            "tiny-decoder",
            "--data",
            book,
            *SMALL,
            "--no-trace",
            "--out",
            folder,
        )
    finally:
        os.umask(before)
    assert code == 0, err
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666 & ~mask}
