"""Copies of the fork server stand for new processes: they print the same and end the same."""

import os
import subprocess

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("report", "SAVED"), ("report", "missing.trace"), ("--version",), ("trace", "no.py:X")],
)
def test_a_copy_prints_and_ends_as_a_new_process(started, python, saved, words):
    words = [str(saved) if word == "SAVED" else word for word in words]
    new = subprocess.run(
        [python, "-m", "shapetrace", *words],
        env=dict(os.environ),  # readline sets COLUMNS where Python does not see it
        capture_output=True,
        text=True,
        check=False,
    )
    copy = started(*words)
    out, err = copy.communicate()
    assert (copy.returncode, out, err) == (new.returncode, new.stdout, new.stderr)
