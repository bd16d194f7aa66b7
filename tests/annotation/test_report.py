"""The diff that `patch` takes, to the byte."""

import subprocess

import pytest

from shapetrace.annotation.plan.plans import LeftOut, Rewritten, Written
from shapetrace.annotation.report import annotation_summary, diff


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        (b"a\nb", b"a\nB"),
        (b"a\nb", b"a\nB\n"),
        (b"\xef\xbb\xbfa\n\x0cb\nc \xe9\x85\n", b"\xef\xbb\xbfa\n\x0cB\nc \xe9\x85\n"),
        (b"a\rb\r\nc\n", b"a\rb\r\nC\n"),
    ],
)
def test_patchable(tmp_path, old, new):
    file = tmp_path / "pkg" / "a.py"
    file.parent.mkdir()
    file.write_bytes(old)
    patch = diff([Rewritten(str(file), old, new)], tmp_path)
    assert patch.startswith(b"--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ ")
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input=patch,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == new


def test_colour_is_only_added(tmp_path):
    file = Rewritten(str(tmp_path / "a.py"), b"a\nb\n", b"a\nc\n")
    plain, colored = diff([file], tmp_path), diff([file], tmp_path, color=True)
    assert b"\x1b" not in plain
    assert b"\x1b[31m-b\x1b[0m\n\x1b[32m+c\x1b[0m\n" in colored


def test_summary(tmp_path):
    written = (
        Written(1, "f", "x", "argument"),
        Written(1, "f", "return", "return"),
        Written(9, "g", "y", "local"),
    )
    file = Rewritten(str(tmp_path / "a.py"), b"a", b"b", written)
    left = [LeftOut(str(tmp_path / "a.py"), 9, "g", "z", "is odd")]
    assert annotation_summary([file], left, 1234, tmp_path, equal=5) == (
        "2 functions annotated in 1 file: 1 parameter, 1 return, 1 variable\n"
        "proven by running: 1,234 values checked by jaxtyping and beartype\n"
        "outputs equal to the bit in 5 runs\n"
        "left out:\n"
        "  a.py:9 g `z` is odd\n"
    )


def test_invented_names_are_those_that_were_written(tmp_path):
    written = (Written(1, "f", "x", "argument"),)
    file = Rewritten(str(tmp_path / "a.py"), b"a", b'x: "B x_1 n_or_1"', written)
    said = annotation_summary([file], [], 0, tmp_path, invented=("n_or_1", "x_1", "y_1"))
    assert "2 sizes have invented names (n_or_1, x_1): rename at will\n" in said
    said = annotation_summary([file], [], 0, tmp_path, invented=("x_1", "y_1"))
    assert "1 size has an invented name (x_1): rename at will\n" in said
    assert "invented" not in annotation_summary([file], [], 0, tmp_path, invented=("y_1",))


def test_nothing_to_add_is_said_in_words(tmp_path):
    assert annotation_summary([], [], 0, tmp_path).startswith("nothing to add: ")
