"""``shapetrace trace``: tables, failures, bad input, and models that misbehave."""

import json
import os
import signal
import sys
import textwrap
import time

import pytest

from shapetrace.cli import main

MODELS = """
import os, sys, time
import torch
from torch import nn

class MLP(nn.Module):
    def __init__(self, d_model=8, d_ff=16, wrong=0):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff + wrong, d_model)
    def forward(self, x, scale=1.0):
        hidden = self.up(x)
        return self.down(hidden) * scale

class Bare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(8, width)
    def forward(self, x):
        return self.up(x)

class Ids(nn.Module):
    def __init__(self, count=10):
        super().__init__()
        self.table = nn.Embedding(count, 4)
    def forward(self, x):
        return self.table(x)

class Masked(MLP):
    def forward(self, x, mask):
        return super().forward(x.masked_fill(mask, 0.0))

class Halved(MLP):
    def forward(self, x):
        half = x.half()
        return self.up(half)

def seven():
    return 7

class Loud(MLP):
    def forward(self, x):
        print("from python")
        os.write(1, b"from below\\n")
        return super().forward(x)

class Leaves(MLP):
    def forward(self, x):
        hidden = self.up(x)
        sys.exit(7)

class Forks(MLP):
    def forward(self, x):
        os.fork()
        return super().forward(x)

class Endless(MLP):
    def forward(self, x):
        hidden = self.up(x)
        sys.stderr.write("running\\n")
        sys.stderr.flush()
        while True:
            time.sleep(0.05)

class Loop(MLP):
    def forward(self, x):
        hidden = self.up(x)
        sys.stderr.write("running\\n")
        sys.stderr.flush()
        return self.turns(hidden)

class Operators(Loop):
    def turns(self, hidden):
        while True:
            hidden = hidden * 1

class Catches(Loop):
    @torch.no_grad()
    def turns(self, hidden):
        while True:
            try:
                hidden = hidden + 1
            except Exception:
                pass

class Counts(Loop):
    def turns(self, hidden):
        count = 0
        while True:
            count += 1

class Slow(MLP):
    runs = 0
    def forward(self, x):
        Slow.runs += 1
        if Slow.runs == 5:
            sys.stderr.write("waiting\\n")
            sys.stderr.flush()
            time.sleep(60)
        return super().forward(x)

class Vandal(MLP):
    def forward(self, x):
        os.chdir("/")
        sys.stdout.close()
        sys.stdout = None
        return super().forward(x)
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    (tmp_path / "traced_models.py").write_text(textwrap.dedent(MODELS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield "traced_models.py"
    sys.modules.pop("traced_models", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


@pytest.fixture
def run(models, capsys):
    def call(name, *words):
        with pytest.raises(SystemExit) as ended:
            main(["trace", f"{models}:{name}", *words])
        seen = capsys.readouterr()
        return ended.value.code, seen.out, seen.err

    return call


X = ("--input", "x:float32[B=2,n=3,d_model=8]")


def test_rows_with_names(run):
    code, out, _ = run("MLP", *X, "--format", "json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert rows["hidden"]["dims"] == "B n d_ff"
    assert rows["hidden"]["shape"] == [2, 3, 16]
    assert rows["return"]["dims"] == "B n d_model"


def test_evidence_is_listed_and_names_are_renamed(run):
    code, out, _ = run("MLP", *X, "--dims", "explain", "--alias", "d_ff=width")
    assert code == 0
    assert "B n width" in out
    listed = out.splitlines()[out.splitlines().index("name     size  axes  evidence") :]
    assert any(line.startswith(("width", "d_ff")) and "probe" in line for line in listed)


def test_what_was_saved_is_shown_again(run, tmp_path, capsys):
    code, out, _ = run("MLP", *X, "--save", "run.trace")
    assert code == 0
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / "run.trace")])
    assert capsys.readouterr().out == out


def test_a_failure_ends_the_table_and_is_explained(run):
    code, out, err = run("MLP", *X, "--arg", "wrong=1")
    assert code == 1
    table, _, explained = out.partition("failed: ")
    assert "hidden" in table
    assert "RuntimeError in MLP: mat1 and mat2 shapes cannot be multiplied" in explained
    assert "traced_models.py:13: return self.down(hidden) * scale" in explained
    assert "hidden: float32[B=2, n=3, d_ff=16], from `hidden` of MLP" in explained
    assert "16 is `d_ff`, from `hidden` of MLP (traced_models.py:12)" in explained
    assert (
        "17 is `d_ff+wrong`, from in_features of `self.down`, `d_ff + wrong` (traced_models.py:10)"
        in explained
    )
    assert err.splitlines()[-1].startswith("error: the model raised RuntimeError: mat1 and mat2")


def test_debug_shows_the_original_traceback(run):
    _, _, err = run("MLP", *X, "--arg", "wrong=1", "--debug")
    assert "in forward" in err
    assert "direct cause" in err


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("MLP", ("--input", "x:float23[2]"), "unknown dtype 'float23'"),
        ("MLP", ("--input", "y:float32[2,8]"), "missing a required argument: 'x'; it takes (x"),
        ("MLP", (), "do not match MLP.forward: missing a required argument: 'x'"),
        ("MPL", X, "has no 'MPL': did you mean 'MLP'?"),
        ("MLP", (*X, "--arg", "depth=3"), "--arg depth: "),
        ("MLP", (*X, "--arg", "d_ff=0.5"), "--arg d_ff=0.5: expected an int, not a float"),
        ("MLP", (*X, "--arg", "d_ff=wide"), "--arg d_ff=wide: expected an int, not text; making"),
        ("Bare", (*X, "--arg", "width=wide"), "--arg width is the text 'wide'; making"),
        ("MLP", (*X, "--arg", "d_ff=-1"), "making traced_models.py:MLP raised RuntimeError"),
        ("seven", X, "traced_models.py:seven made an int, not an nn.Module"),
        ("MLP", ("--input", "x:int64[2,8]"), 'model takes float32: write --input "x:float32[2,8]"'),
        ("Ids", ("--input", "x:float32[B=2,n=3]"), "model takes int64: write --input"),
        ("Masked", (*X, "--input", "mask:int64[B,n,1]"), "input mask is int64, and the model"),
        ("MLP", (*X, "--alias", "d_ff"), "--alias 'd_ff' is not of the form name=other"),
        ("MLP", (*X, "--inputs", "x.pt"), "not both"),
        ("MLP", ("--inputs", "x.pt"), "there is no such file"),
        ("MLP", (*X, "-o", "nowhere/x.json"), "cannot write nowhere/x.json"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(run, name, words, says):
    code, out, err = run(name, *words)
    assert code == 2
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == (3 if "float23" in says else 1)


def test_a_dtype_that_the_model_itself_gets_wrong_is_its_failure(run):
    code, out, _ = run("Halved", *X)
    assert code == 1
    assert "half" in out


def test_a_notebook_is_told_to_be_a_script(run, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["trace", "notes.ipynb:Net", *X])
    assert ended.value.code == 2
    assert "notes.ipynb:Net is a notebook" in capsys.readouterr().err


def test_an_axis_named_like_an_argument_is_told_once(run):
    _, out, _ = run("MLP", *X)
    assert out.splitlines()[0].split().count("d_model=8") == 1


def test_an_axis_named_like_an_argument_of_another_size_is_told_apart(run):
    _, out, _ = run("MLP", "--input", "x:float32[d_ff=2,n=3,8]", "--format", "json")
    dims = {row["name"]: row["dims"] for row in json.loads(out)["rows"]}
    assert dims["hidden"] == "d_ff n init_d_ff"
    _, out, _ = run("MLP", "--input", "x:float32[d_ff=2,n=3,8]")
    assert "init_d_ff=16" in out.splitlines()[0]


def test_an_alias_of_nothing_is_told(run):
    _, out, _ = run("MLP", *X, "--alias", "d_fff=width")
    assert "there is no `d_fff` to be called `width`; did you mean `d_ff`?" in out


def test_the_caret_stands_under_the_place(run):
    _, _, err = run("MLP", "--input", "x:float23[2]")
    assert err.splitlines()[1:] == ["  x:float23[2]", "    ^"]


@pytest.fixture
def apart(models, started):
    """Starts a trace in a process of its own."""

    def start(name, *words):
        return started("trace", f"{models}:{name}", *X, *words)

    return start


@pytest.mark.slow
def test_prints_go_to_stderr(apart):
    process = apart("Loud", "--format", "json")
    out, err = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["target"] == "traced_models.py:Loud"
    assert err.count("from python") == 1
    assert "from below" in err


def test_a_model_that_leaves_keeps_its_table(run):
    code, out, err = run("Leaves", *X)
    assert code == 1
    assert "hidden" in out
    assert "sys.exit(7)" in out
    assert "SystemExit: 7" in err


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_model_that_forks_prints_one_table(apart):
    process = apart("Forks", "--format", "json")
    out, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["failure"] is None


@pytest.mark.slow
def test_a_model_that_breaks_its_surroundings(apart, tmp_path):
    process = apart("Vandal", "-o", "out.json")
    out, _ = process.communicate()
    assert process.returncode == 0
    assert out == ""
    assert json.loads((tmp_path / "out.json").read_text())["failure"] is None
    out, _ = apart("Vandal").communicate()
    assert "hidden" in out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process on Windows")
def test_one_ctrl_c_while_naming_leaves_the_partial_table(apart):
    process = apart("Endless")
    line = ""
    while line != "running\n":  # it is being named
        line = process.stderr.readline()
        assert line, "it ended early"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "hidden" in out
    (failed,) = (line for line in out.splitlines() if line.startswith("failed: "))
    assert failed == "failed: KeyboardInterrupt in Endless"
    statement = out.partition(failed)[2].splitlines()[1]
    assert (
        "while True" in statement or "time.sleep" in statement
    )  # the model's line, not our handler's
    assert "interrupt.py" not in out
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process on Windows")
@pytest.mark.parametrize("name", ["Operators", "Catches", "Counts"])
def test_one_ctrl_c_ends_loops_that_are_busy_and_shows_both_ends(apart, name):
    process = apart(name)
    line = ""
    while line != "running\n":
        line = process.stderr.readline()
        assert line, "it ended early"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "hidden" in out
    assert "in the middle of this interrupted run are left out" in out
    assert f"failed: KeyboardInterrupt in turns() ({name}.turns)" in out.splitlines()
    assert out.count("\n") < 4000
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process on Windows")
def test_ctrl_c_while_naming_leaves_the_names_found_so_far(apart):
    process = apart("Slow", "--format", "json")
    line = ""
    while line != "waiting\n":  # at the fourth size that is tried
        line = process.stderr.readline()
        assert line, "it ended early"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    dims = {row["name"]: row["dims"] for row in json.loads(out)["rows"]}
    assert dims["hidden"].startswith("B n ")
