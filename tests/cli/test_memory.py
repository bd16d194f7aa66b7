"""What does not fit in memory is refused before it starts, by every command."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        (("generate", "--prompt", "a", "--max-new-tokens", "2"), "--samples"),
        (("generate", "--prompt", "a", "--text-only"), "--max-new-tokens"),
        (("attention", "--text", "a"), "--text"),
        (("train", "--data"), "--batch"),
        (("train", "--no-trace", "--data"), "--accumulate"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_by_every_command(
    command, tmp_path, arguments, way_out
):
    if arguments[-1] == "--data":
        (tmp_path / "book.txt").write_text("the quick brown fox " * 50)
        arguments = (*arguments, tmp_path / "book.txt")
    code, out, err = command(arguments[0], "--config", "llama-3.1-405b", *arguments[1:])
    assert (code, out, err.count("\n")) == (2, "", 1)
    # 405,853,388,800 numbers of 4 bytes; in training with a gradient and two moments of each.
    assert (
        "5.91 TiB of parameters" if arguments[0] == "train" else "1.48 TiB of parameters"
    ) in err
    advice = err.split("left; use ")[1]
    assert way_out in advice
    assert "--device meta" not in advice  # no way out here: it has no such device


@pytest.mark.parametrize("size", [10**9, 10**18, 10**30])
@pytest.mark.parametrize("arguments", [
    ("generate", "--prompt", "a", "--max-new-tokens", "2", "--samples"),
    ("train", "--no-trace", "--seq", "16", "--data", "book.txt", "--batch"),
])  # fmt: skip
def test_a_size_that_does_not_fit_is_refused_at_once(
    command, tmp_path, monkeypatch, arguments, size
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("the quick brown fox " * 50)
    code, out, err = command(arguments[0], "--config", "tiny-decoder", *arguments[1:], size)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "bytes" in err
