"""Bad input: one clear line on stderr, exit 2, nothing on stdout, no traceback."""

import os
import signal
import stat
import subprocess
import time

import pytest

TINY = ("forward", "--config", "tiny-decoder")
PAIR = ("forward", "--config", "tiny-encoder-decoder")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forward", "--config", "gpt3"), "no preset 'gpt3': did you mean 'gpt2'"),
        (("forward", "--config", "missing.toml"), "missing.toml does not exist"),
        ((*TINY, "--set", "h=5"), "`h` is 5, which does not divide `d_model` (32)"),
        ((*TINY, "--set", "h_kv=3"), "`h_kv` is 3, which does not divide `h` (4)"),
        ((*TINY, "--set", "d_ff=-2"), "`d_ff` is -2; it must be at least 1"),
        ((*TINY, "--set", "layers=two"), "`layers` is 'two'; it must be a whole number"),
        ((*TINY, "--set", "layers"), "--set 'layers' is not of the form key=value"),
        ((*TINY, "--set", "layrs=1"), "no configuration field `layrs`: did you mean 'layers'"),
        ((*TINY, "--set", "positions=rope", "--set", "d_k=7"), "so it must be even"),
        ((*TINY, "--text", ""), "the text is empty"),
        ((*TINY, "--text", "a" * 513), "513 tokens, but the model has 512 learned positions"),
        ((*TINY, "--seq", "513"), "--seq 513 is longer than the 512 learned positions"),
        ((*TINY, "--batch", "0"), "--batch"),
        ((*TINY, "--set", "vocab_size=100", "--text", "a"), "vocab_size is 100"),
        ((*TINY, "--text", "a", "--batch", "2"), "--batch and --seq are for random ids"),
        ((*TINY, "--text", "a", "--target-text", "b"), "is for encoder-decoder models"),
        ((*TINY, "--target-text", "b"), "is for encoder-decoder models"),
        ((*PAIR, "--target-text", "b"), "--target-text needs a --text"),
        (
            (*PAIR, "--text", "a", "--target-text", "b", "--target-text", "c"),
            "1 texts and 2 target",
        ),
        ((*TINY, "--text", "a", "--text-file", "b"), "--text and --text-file are both given"),
        ((*TINY, "--text-file", "missing.txt"), "cannot read text file missing.txt"),
        ((*TINY, "-o", "/missing/x.json"), "cannot write /missing/x.json"),
        ((*TINY, "-o", "x.xls"), "cannot tell the format from the name 'x.xls'"),
        ((*TINY, "--save", "/"), "cannot write /: it is a directory"),
        ((*TINY, "--format", "yaml"), "'yaml'"),
        ((*TINY, "--level", "tensor"), "'tensor'"),
        (("forward",), "Missing option '--config'"),
        (("forward", "--confg", "gpt2"), "--confg"),
        (("forwrd",), "forwrd"),
        (("report", "missing.trace"), "cannot read trace missing.trace"),
        (("report",), "TRACE"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)
def test_one_clear_line(command, arguments, words):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.toml", b'kind = "decoder"\nlayers = = 2\n', "line 2"),
        ("x.json", b'{"kind": "decoder",\n "layers": }', "line 2"),
        ("x.json", b"[1]", "it must hold an object"),
        ("x.toml", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_broken_configuration_file(command, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    code, _, err = command("forward", "--config", path)
    assert code == 2
    assert err.count("\n") == 1
    assert words in err


def test_a_text_file_that_is_no_text(command, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"ab\xff")
    code, _, err = command(*TINY, "--text-file", path)
    assert (code, err) == (2, f"error: text file {path} is not UTF-8 (byte 2)\n")


def test_weights_that_are_missing_or_cut_off(command, tmp_path, stories):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((stories / name).read_bytes())
    code, _, err = command("forward", "--config", tmp_path, "--text", "Once")
    assert code == 2
    assert err.count("\n") == 1
    whole = (stories / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    code, _, err = command("forward", "--config", tmp_path, "--text", "Once")
    assert code == 2
    assert err.count("\n") == 1
    assert "model.safetensors" in err


def test_ids_beyond_the_vocabulary(command, stories):
    code, _, err = command(
        "forward", "--config", stories, "--set", "vocab_size=100", "--text", "Once upon a time"
    )
    assert code == 2
    assert "outside the vocabulary of 100" in err


def test_debug_shows_the_traceback_too(command):
    code, _, err = command("forward", "--config", "gpt3", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("error: no preset 'gpt3'")


def test_ctrl_c_is_quiet(command, monkeypatch):
    from shapetrace import api  # noqa: PLC0415

    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "configs", interrupted)
    assert command("configs") == (130, "", "")


def test_a_failed_write_leaves_the_old_file(command, saved, tmp_path):
    target = tmp_path / "x.json"
    target.write_text("old")
    target.chmod(0o640)
    assert command("report", saved, "-o", target)[0] == 0
    assert target.read_text(encoding="utf-8").startswith("{")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_closed_pipe_is_one_line(python, saved):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [python, "-m", "shapetrace", "report", str(saved), "--format", "json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 2
    assert done.stderr == (
        "error: cannot write all of the result to standard output: its reader closed it\n"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_one_line(python, saved):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [python, "-m", "shapetrace", "report", str(saved)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write all of the result to standard output")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("seconds", [0.6, 1.2, 2.0])
def test_ctrl_c_at_any_time_is_quiet(python, seconds):
    process = subprocess.Popen(
        [python, "-m", "shapetrace", "forward", "--config", "gpt2-medium", "--seq", "256"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert err == ""
    assert process.returncode in {130, -signal.SIGINT}  # the latter before Python listens
