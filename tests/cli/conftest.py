"""The command line in this process and in others, and a trace that it saved."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from shapetrace.cli import main

STORIES = Path(__file__).parents[2] / "../shared/data/stories260k"


@pytest.fixture
def command(capsys):
    """Runs a command line; returns its exit code, stdout and stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


@pytest.fixture(autouse=True)
def no_columns(monkeypatch):
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A trace of tiny-decoder with two texts, as `--save` writes it."""
    from shapetrace import forward, save  # noqa: PLC0415

    path = tmp_path_factory.mktemp("saved") / "tiny.trace"
    save(forward("tiny-decoder", texts=["dog bites man", "a cat"]), path)
    return path


@pytest.fixture
def stories():
    if not STORIES.is_dir():
        pytest.skip("shared/data/stories260k is not here")
    return STORIES


@pytest.fixture
def python():
    """The interpreter with the package, for runs in a process of their own."""
    return sys.executable


class Copied:
    """A command in a copy of the fork server; used like `subprocess.Popen` with text.

    Its stderr is a pipe to read from, its stdout a file, unless streams are given.
    """

    def __init__(self, channel, words, folder=None, stdout=None, stderr=None):
        self.channel = channel
        self.returncode = None
        with ExitStack() as ours:
            self.printed = None
            if stdout is None:
                self.printed = tempfile.TemporaryFile("w+")  # noqa: SIM115 - read in the end
                stdout = self.printed.fileno()
            self.stderr = None
            if stderr is None:
                reader, stderr = os.pipe()
                ours.callback(os.close, stderr)
                self.stderr = open(reader)  # noqa: PTH123, SIM115 - read in the end
            request = {
                "words": [str(word) for word in words],
                "folder": str(folder or Path.cwd()),
                "environment": dict(os.environ),
            }
            line = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(channel, [line], [stdout, stderr])
            channel.sendall(line[sent:])
        self.pid = int(self._line())

    def _line(self):
        line = b""
        while not line.endswith(b"\n"):
            line += self.channel.recv(1)
        return line

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=60):
        self.channel.settimeout(timeout)
        try:
            self.returncode = int(self._line())
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            self._line()
            raise
        finally:
            self.channel.settimeout(None)
        return self.returncode

    def communicate(self, timeout=60):
        err = ""
        if self.stderr is not None:
            with self.stderr:
                err = self.stderr.read()
        self.wait(timeout)
        if self.printed is None:
            return None, err
        with self.printed:
            self.printed.seek(0)
            return self.printed.read(), err


@pytest.fixture(scope="session")
def _fork_server():
    ours, theirs = socket.socketpair()
    program = [sys.executable, Path(__file__).with_name("fork_server.py"), str(theirs.fileno())]
    with (
        ours,
        subprocess.Popen(
            program, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
        ),
    ):
        theirs.close()
        yield ours
        ours.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def started(_fork_server):
    """Starts a command line in a copy of a process that has imported torch."""

    def start(*words, **options):
        return Copied(_fork_server, words, **options)

    return start
