"""Files are read whole, and never without end."""

import os
import threading
from pathlib import Path

import pytest

from shapetrace.reading import MEBIBYTE, read_text, read_whole

ENDLESS = "/dev/zero"


@pytest.fixture
def endless(tmp_path):
    """A pipe that is filled for as long as somebody reads from it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def fill():
        try:
            with path.open("w") as pipe:
                while True:
                    pipe.write("yes\n" * 10_000)
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    yield path
    thread.join(5)


@pytest.mark.parametrize("size", [0, 1, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 2 * MEBIBYTE])
def test_up_to_the_most_and_no_further(tmp_path, size):
    path = tmp_path / "x"
    path.write_bytes(b"a" * size)
    assert read_whole(path, 2) == b"a" * size
    path.write_bytes(b"a" * (2 * MEBIBYTE + 1))
    with pytest.raises(OSError, match="it holds more than 2 MiB"):
        read_whole(path, 2)


def test_what_never_ends_is_refused(endless):
    with pytest.raises(OSError, match="it holds more than 1 MiB"):
        read_whole(endless, 1)


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa\r\nb\rc\n", "\u00e9\u2028\n".encode(), b""])
def test_text_is_what_python_reads(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    assert read_text(path, 1) == path.read_text(encoding="utf-8-sig")


@pytest.mark.skipif(not Path(ENDLESS).exists(), reason="this system has no /dev/zero")
@pytest.mark.parametrize(
    "arguments",
    [
        ("forward", "--config", ENDLESS),
        ("forward", "--config", "tiny-decoder", "--text-file", ENDLESS),
        ("report", ENDLESS),
        ("generate", "--config", ENDLESS, "--prompt", "a"),
        ("train", "--config", "tiny-decoder", "--data", ENDLESS),
    ],
)
def test_no_command_reads_without_end(capsys, arguments):
    from shapetrace.cli import main  # noqa: PLC0415

    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert "holds more than" in err
