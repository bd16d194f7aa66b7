"""The command line in this process, and a trace that it saved."""

import sys
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
