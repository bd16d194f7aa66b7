"""Odd sizes, texts, files and names: a result, or one clear line."""

import json
import os
import subprocess

import pytest

TINY = ("forward", "--config", "tiny-decoder")
PAIR = ("forward", "--config", "tiny-encoder-decoder")
HUGE = (10**9, 10**18, 10**30)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("option", ["--batch", "--seq"])
def test_a_huge_size_is_refused_at_once(command, device, size, option):
    model = PAIR if option == "--seq" else TINY
    if (device, option, size) == ("meta", "--batch", 10**9):
        size = 10**17  # the smaller one can be counted, and is
    code, out, err = command(*model, option, size, "--device", device)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "64 bits" in err or "bytes" in err


def test_a_size_that_only_meta_can_take_costs_nothing_there(command):
    code, out, err = command(*TINY, "--batch", 10**7, "--device", "meta", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["sizes"] == {"B": 10**7, "n": 16}


@pytest.mark.parametrize("seed", [2**64, 10**30, -1])
def test_a_seed_that_torch_cannot_take(command, seed):
    code, out, err = command(*TINY, "--seed", seed)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "seed" in err


@pytest.mark.parametrize("option", ["--config", "--text-file", "-o", "--save"])
@pytest.mark.parametrize("name", ["a" * 400 + ".json", "a/" * 3000 + "x.json", "\x1b[31m.json"])
def test_a_name_that_is_no_file(command, tmp_path, monkeypatch, option, name):
    monkeypatch.chdir(tmp_path)
    arguments = ("--config", "tiny-decoder") if option != "--config" else ()
    code, out, err = command("forward", *arguments, option, name)
    assert "\x1b" not in out + err
    if option in {"--config", "--text-file"} or len(name) > 255:
        assert (code, out) == (2, "")
        assert err.count("\n") == 1


def test_two_results_in_one_file_are_refused(command, tmp_path):
    path = tmp_path / "x.json"
    code, _, err = command(*TINY, "-o", path, "--save", path)
    assert (code, path.exists()) == (2, False)
    assert "the other result goes there too" in err


@pytest.mark.parametrize(
    "text", ["\x1b[31mred", "\u202eabc", "\x85\x9b", "\x00", "\U0001f642", "שלום", "中文", "a\r\nb"]
)
def test_a_text_never_moves_the_cursor(command, text):
    code, out, err = command(*TINY, "--text", text)
    assert (code, err) == (0, "")
    heading = next(line for line in out.splitlines() if line.startswith("text: "))
    assert heading.isprintable()


def test_tokens_of_a_vocabulary_never_turn_the_line_around(saved):
    from dataclasses import replace  # noqa: PLC0415

    from shapetrace.records.storage import load  # noqa: PLC0415
    from shapetrace.report.document import build_report  # noqa: PLC0415
    from shapetrace.report.wording import heading  # noqa: PLC0415

    trace = replace(load(saved), tokens=((("\u202eab\x9b\n\x1b", 7),),))
    shown = dict(heading(build_report(trace, "tensors", "en", folded=True)))["text"]
    assert shown == '"\\u202eab\\x9b\\n\\u001b":7'


def test_a_byte_order_mark_is_no_text(command, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfhi")
    _, out, _ = command(*TINY, "--text-file", path, "--format", "json")
    assert json.loads(out)["tokens"] == [[["h", 104], ["i", 105]]]


def test_many_texts_are_not_all_listed(command):
    texts = [word for _ in range(20) for word in ("--text", "ab")]
    _, out, _ = command(*TINY, *texts)
    lines = [line for line in out.splitlines() if line.startswith("text: ")]
    assert len(lines) == 9
    assert lines[-1] == "text: ... +12 more"


def test_targets_are_told_from_texts(command):
    _, out, _ = command(*PAIR, "--text", "ab", "--target-text", "c")
    assert 'text: "a":97  "b":98\ntarget: "c":99\n' in out


def test_an_error_with_stderr_closed_keeps_its_exit_code(python):
    shell = f'"{python}" -m shapetrace report missing.trace 2>&-'
    assert subprocess.run(shell, shell=True, check=False).returncode == 2


def test_meanings_are_for_what_the_axes_say():
    from shapetrace.report.language.meanings import meaning  # noqa: PLC0415

    assert meaning("x", "B n d_model", "en") == "one vector per token: the residual stream"
    assert meaning("x", "B c h w", "en") == ""
    assert meaning("k", "B h_kv n d_k", "en").startswith("key")
    assert meaning("logits", "B classes", "zh") == ""
    assert meaning("mask", "B m", "en") == "which tokens are real, not padding"


@pytest.mark.parametrize(
    "words",
    [
        ("forward", "--text", "Once"),
        ("generate", "--prompt", "Once"),
        ("attention", "--text", "Once"),
        ("train", "--data", __file__, "--steps", 1),
    ],
    ids=lambda words: words[0],
)
def test_trained_weights_without_their_tokenizer_read_no_bytes_unless_asked(
    command, stories, tmp_path, words
):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to((stories / name).resolve())
    name, *rest = words
    code, out, err = command(name, "--config", tmp_path, *rest)
    assert (code, out) == (2, "")
    assert err == (
        f"error: {tmp_path} has no tokenizer.json, so what ids its text becomes is not known; "
        "put the model's tokenizer.json there, or read text as bytes with --tokenizer bytes\n"
    )
    code, out, err = command(name, "--config", tmp_path, *rest, "--tokenizer", "bytes")
    assert code == 0, err


def test_a_checkpoint_keeps_its_dtype_unless_another_is_asked(command, stories, tmp_path):
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).symlink_to((stories / name).resolve())
    weights = load_file(stories / "model.safetensors")
    halves = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
    save_file(halves, tmp_path / "model.safetensors")
    found = {}
    for wanted in ("auto", "float32"):
        code, out, err = command(
            "forward", "--config", tmp_path, "--text", "Once", "--dtype", wanted, "--format", "json"
        )
        assert code == 0, err
        found[wanted] = json.loads(out)
    assert [found[wanted]["environment"]["dtype"] for wanted in ("auto", "float32")] == [
        "bfloat16",
        "float32",
    ]
    numbers = 260_032  # as published; tied embeddings count once
    totals = [found[wanted]["totals"]["parameter_bytes"] for wanted in ("auto", "float32")]
    assert totals == [2 * numbers, 4 * numbers]


def test_weights_that_are_no_floating_point_are_refused(command, stories, tmp_path):
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).symlink_to((stories / name).resolve())
    weights = load_file(stories / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"].to(torch.int8)
    save_file(weights, tmp_path / "model.safetensors")
    code, out, err = command("forward", "--config", tmp_path, "--text", "Once")
    assert (code, out) == (2, "")
    assert "tensor 'model.norm.weight'" in err
    assert "holds int8" in err


@pytest.mark.parametrize("name", ["x.tsv", "x.xls", "x.foo", "x"])
@pytest.mark.parametrize("subject", ["generate --prompt", "attention --text"])
def test_no_other_format_is_written_under_a_formats_name(command, tmp_path, subject, name):
    what, given = subject.split()
    code, out, err = command(what, "--config", "tiny-decoder", given, "a", "-o", tmp_path / name)
    assert (code, out, list(tmp_path.iterdir())) == (2, "", [])
    assert f"cannot tell the format from the name {name!r}: use .txt, .json" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("forward", "--config", "tiny-decoder", "--text", "a"),
        ("attention", "--config", "tiny-decoder", "--text", "a"),
        ("generate", "--config", "tiny-decoder", "--prompt", "a", "--max-new-tokens", "1"),
    ],
)
def test_a_dash_is_stdout(command, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*arguments, "--format", "json", "-o", "-")
    assert (code, err, list(tmp_path.iterdir())) == (0, "", [])
    assert json.loads(out)["format_version"] == 1


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("forward", "--config", "tiny-decoder", "--batch"), "a whole number"),
        (("forward", "--config", "tiny-decoder", "--seed"), "a whole number"),
        (("generate", "--config", "tiny-decoder", "--prompt", "a", "--top-k"), "a whole number"),
        (("generate", "--config", "tiny-decoder", "--prompt", "a", "--top-p"), "a number"),
        (("train", "--config", "tiny-decoder", "--data", "x", "--lr"), "a number"),
        (("attention", "--config", "tiny-decoder", "--text", "a", "--layer"), "a whole number"),
    ],
)
def test_a_number_that_is_none_is_said_in_words(command, arguments, kind):
    code, out, err = command(*arguments, "many")
    assert (code, out) == (2, "")
    assert err == f"error: Invalid value for '{arguments[-1]}': 'many' is not {kind}.\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "--config is empty; give a preset"),
        ("./tiny-decoderr", "tiny-decoderr does not exist"),
        ("sub/", "config.json does not exist: sub is no directory of a model"),
        ("sub", "config.json does not exist: sub is no directory of a model"),
        ("cut.toml", "(at line 2, the end of the document)"),
    ],
)
def test_a_configuration_that_is_none(command, tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "cut.toml").write_text('kind = "decoder"\nlayers = [1,\n')
    code, out, err = command("forward", "--config", name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("forward", "--config", "no-such-preset"),
        ("generate", "--config", "tiny-decoder", "--prompt", "a", "--max-new-tokens", "200"),
        ("train", "--config", "tiny-decoder", "--data", "book.txt", "--steps", "2", "--seq", "8"),
    ],
)
def test_a_reader_of_both_streams_that_is_gone_costs_no_exit_code(started, tmp_path, arguments):
    (tmp_path / "book.txt").write_text("the quick brown fox " * 20)
    reader, writer = os.pipe()
    process = started(*arguments, folder=tmp_path, stdout=writer, stderr=writer)
    os.close(writer)
    os.close(reader)
    assert process.wait(60) == 2


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("forward", "--config", "tiny-decoder", "--text-file", "x.txt"), "-o"),
        (("forward", "--config", "tiny-decoder", "--text-file", "x.txt"), "--save"),
        (("forward", "--config", "x.json"), "-o"),
        (("generate", "--config", "x.json", "--prompt", "a"), "--save"),
        (("attention", "--config", "x.json", "--text", "a"), "-o"),
        (("train", "--config", "tiny-decoder", "--data", "x.txt"), "-o"),
        (("report", "x.txt"), "-o"),
        (("trace", "x.py:Net", "--input", "x:float32[B=2]", "--format", "json"), "-o"),
        (("trace", "net:Net", "--inputs", "x.py:make"), "--save"),
    ],
)
def test_a_result_never_replaces_what_it_came_from(
    command, tmp_path, monkeypatch, arguments, option
):
    monkeypatch.chdir(tmp_path)
    read = next(word for word in arguments if word.startswith("x.")).partition(":")[0]
    (tmp_path / read).write_text("kept")
    (tmp_path / f"link-{read}").symlink_to(read)
    for name in (read, f"./{read}", f"link-{read}"):
        code, out, err = command(*arguments, option, name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "this command reads it" in err
    assert (tmp_path / read).read_text() == "kept"
