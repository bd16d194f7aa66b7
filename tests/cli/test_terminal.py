"""What a real terminal gets, and what a pipe gets."""

import os
import re
import struct
import subprocess

import pytest
from rich.cells import cell_len

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(arguments, columns, **environment):
    """Everything that a program writes to a terminal of a given width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "NO_COLOR"}}
    process = subprocess.Popen(
        arguments,
        stdout=follower,
        stderr=follower,
        stdin=follower,
        env={**kept, "TERM": "xterm-256color", **environment},
    )
    os.close(follower)
    chunks = []
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(leader)
    assert process.wait() == 0
    return b"".join(chunks).decode()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_a_terminal_gets_lines_that_fit(python, saved, columns, language):
    arguments = [python, "-m", "shapetrace", "report", str(saved), "--lang", language]
    text = on_a_terminal(arguments, columns)
    lines = ANSI.sub("", text).splitlines()
    assert max(map(cell_len, lines)) <= columns
    assert any("scores" in line and "B h n n" in line for line in lines)
    assert "\x1b[" in text


def test_no_color_and_dumb_terminals_get_plain_text(python, saved):
    arguments = [python, "-m", "shapetrace", "report", str(saved)]
    assert "\x1b" not in on_a_terminal(arguments, 120, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(arguments, 120, TERM="dumb")


def test_a_pipe_gets_plain_text_that_is_not_cut(command, saved):
    _, out, _ = command("report", saved)
    assert "\x1b" not in out
    assert "not shown" not in out
    line = next(line for line in out.splitlines() if line.strip().startswith("scores"))
    assert line.endswith("every token against every token, per head")


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_columns_is_obeyed(command, saved, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = command("report", saved)
    assert max(map(cell_len, out.splitlines())) <= columns


def test_an_ascii_stream_gets_every_number(python, saved):
    done = subprocess.run(
        [python, "-m", "shapetrace", "report", str(saved), "--lang", "zh"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.isascii()
    assert b"B h n n" in done.stdout
