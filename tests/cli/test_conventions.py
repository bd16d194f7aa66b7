"""What is the same in all commands: options, help, formats, exit codes, errors in one line."""

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
import torch
import typer
from torch import nn

import shapetrace
from shapetrace.cli import app
from shapetrace.errors import ShapetraceError
from shapetrace.report.formats.reporters import ATTENTION, FINDINGS, GENERATION, REPORTERS

COMMANDS = typer.main.get_command(app).commands
OFFERED = {
    "forward": REPORTERS,
    "trace": REPORTERS,
    "train": REPORTERS,
    "report": REPORTERS,
    "generate": GENERATION,
    "attention": ATTENTION,
    "check": FINDINGS,
}
APART = {
    ("annotate", "--output"),  # a folder
    ("annotate", "--train"),
    ("attention", "--text"),  # one text
    ("attention", "--target-text"),
    *((name, "--format") for name in OFFERED),
}
"""Options of one name that rightly say something else."""
GIVEN = {
    "forward": ("--config", "tiny-decoder"),
    "trace": ("torch.nn:Identity", "--input", "float32[B=2]"),
    "train": ("--config", "tiny-decoder", "--data", "book.txt"),
    "report": ("TRACE",),
    "generate": ("--config", "tiny-decoder", "--prompt", "a", "--max-new-tokens", "2"),
    "attention": ("--config", "tiny-decoder", "--text", "ab"),
    "check": ("torch.nn:Identity", "--input", "float32[B=2]"),
}


@pytest.fixture
def given(tmp_path, monkeypatch, saved):
    """The least that each command needs, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text("the quick brown fox jumps over the lazy dog. " * 20)
    return lambda name: [str(saved) if word == "TRACE" else word for word in GIVEN[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_and_exit_codes(command, name):
    code, out, _ = command(name, "--help")
    assert code == 0
    assert re.search(rf"Examples?:\n    shapetrace {name}", out)
    text = " ".join(out.split())
    assert "Exits with 0 when all is well" in text
    assert "2 for bad input" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_what_may_be_repeated_says_so(name):
    for parameter in COMMANDS[name].params:
        assert parameter.multiple == ("May be repeated." in (getattr(parameter, "help", "") or ""))


def test_an_option_is_the_same_in_all_commands():
    found = defaultdict(dict)
    for name, command in COMMANDS.items():
        for parameter in command.params:
            option = max(parameter.opts, key=len)
            if option.startswith("--") and (name, option) not in APART:
                values = getattr(parameter.type, "choices", type(parameter.type).__name__)
                found[option][name] = (
                    parameter.help,
                    parameter.metavar,
                    values,
                    parameter.multiple,
                )
    assert len([option for option, by in found.items() if len(by) > 1]) > 20
    for option, by_command in found.items():
        assert len(set(map(str, by_command.values()))) == 1, (option, by_command)


@pytest.mark.parametrize("name", OFFERED)
def test_the_help_and_the_errors_of_format_follow_from_the_list(command, given, name):
    offered = OFFERED[name]
    _, out, _ = command(name, "--help")
    assert f"--format <{'|'.join(form.name for form in offered)}>" in out
    code, out, err = command(name, *given(name), "--format", "\N{SNOWMAN}")
    names = ", ".join(sorted(form.name for form in offered))
    assert (code, out) == (2, "")
    assert err == f"error: unknown format '\N{SNOWMAN}': known: {names}\n"
    code, out, err = command(name, *given(name), "-o", "x.nonsense")
    suffixes = ", ".join(suffix for form in offered for suffix in form.suffixes)
    assert (code, out) == (2, "")
    assert f"use {suffixes}, or give --format" in err


SHOWN = [
    (name, form)
    for name in ("forward", "report", "generate", "attention", "check")
    for form in OFFERED[name]
]


@pytest.mark.parametrize(("name", "form"), SHOWN, ids=lambda one: getattr(one, "name", one))
def test_each_format_goes_to_stdout_and_to_a_file(command, given, name, form):
    code, out, err = command(name, *given(name), "--format", form.name)
    assert code == 0, err
    for suffix in form.suffixes:
        code, shown, err = command(name, *given(name), "-o", f"result{suffix}")
        assert (code, shown) == (0, ""), err
        text = Path(f"result{suffix}").read_text(encoding="utf-8")
        assert bool(text) == (name != "check" or form.name == "json")
        assert text.partition("\n")[0] in out


SEEDED = ("forward", "generate", "attention", "train", "trace", "check")


@pytest.mark.parametrize("seed", [-1, 2**64, 10**30])
@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_has_one_range_and_one_message(command, given, name, seed):
    code, out, err = command(name, *given(name), "--seed", seed)
    assert (code, out) == (2, "")
    assert err == f"error: seed {seed}: give a whole number from 0 to {2**64 - 1}\n"


@pytest.mark.parametrize("name", ["generate", "forward", "attention"])
def test_the_largest_seed_is_taken(command, given, name):
    drawn = ("--temperature", "1", "--samples", "2") if name == "generate" else ()
    assert command(name, *given(name), *drawn, "--seed", 2**64 - 1)[0] == 0


@pytest.mark.parametrize("name", ["forward", "generate", "attention"])
def test_a_text_may_be_in_a_file(command, given, name):
    Path("t.txt").write_text("dog bites")
    option = "--prompt" if name == "generate" else "--text"
    more = ("--format", "json", "--config", "tiny-decoder")
    more += ("--max-new-tokens", "2") if name == "generate" else ()
    read = command(name, *more, "--text-file", "t.txt")
    typed = command(name, *more, option, "dog bites")
    assert (read[0], typed[0]) == (0, 0)
    assert _timeless(read[1]) == _timeless(typed[1])
    code, _, err = command(name, *more, "--text-file", "t.txt", option, "x")
    assert (code, err) == (
        2,
        f"error: {option} and --text-file are both given; give one of them\n",
    )


def _timeless(text):
    return re.sub(r'"(seconds|tokens_per_second|wall_time_s)": [\d.e-]+', "", text)


def test_no_command_is_one_line(command):
    assert command() == (
        2,
        "",
        "error: no command is given; `shapetrace --help` lists them\n",
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("words", ["--help", "--version", "forward --help", "check -h"])
def test_help_that_cannot_be_written_is_one_line(python, words):
    shell = f'"{python}" -m shapetrace {words} > /dev/full'
    done = subprocess.run(shell, shell=True, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write all of the result to standard output: No sp")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("x:float32[200000000000,300000]", "the inputs need 213 PiB, and "),
        ("x:int64[200000000000,300000]", "the inputs need 426 PiB, and "),
        ("x:bool[B=2000000000,9000000]", "the inputs need 16 PiB, and "),
        ("x:float32[2000000000,3000000000]", "has more bytes than 64 bits can count"),
        ("x:float32[4000000000000000000]", "has more bytes than 64 bits can count"),
    ],
)
@pytest.mark.parametrize("name", ["trace", "check", "annotate"])
def test_an_input_that_no_memory_holds_is_one_line(command, name, spec, words):
    code, out, err = command(name, "torch.nn:Identity", "--input", spec)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


NET = nn.Linear(3, 4)
X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: shapetrace.forward("tiny-decoder", texts="dog"), "texts='dog' is one text"),
        (lambda: shapetrace.forward("tiny-decoder", texts=[1]), "texts is a list, [1]"),
        (lambda: shapetrace.forward("tiny-decoder", batch=2.5), "both are whole numbers"),
        (lambda: shapetrace.forward("tiny-decoder", seed="x"), "seed 'x': give a whole number"),
        (lambda: shapetrace.forward("tiny-decoder", device="gpu"), "unknown device 'gpu'"),
        (lambda: shapetrace.forward(NET), "is no name; give a preset"),
        (lambda: shapetrace.generate("tiny-decoder", "dog"), "prompts='dog' is one text"),
        (lambda: shapetrace.generate("tiny-decoder"), "no prompt is given"),
        (lambda: shapetrace.trace(nn.Linear, X), "Linear needs in_features, out_features"),
        (lambda: shapetrace.trace(print, X), "not an nn.Module"),
        (lambda: shapetrace.trace(NET, X, dims={"B": -7}), "dims: B is -7"),
        (lambda: shapetrace.trace(NET, X, dims={"B": 2.0}), "dims: B is 2.0"),
        (lambda: shapetrace.trace(NET, X, dims={7: 2}), "dims: 7 is no name"),
        (lambda: shapetrace.trace(NET, X, dims=["B"]), "dims is a list"),
        (lambda: shapetrace.record(nn.Linear), "Linear is a class, not a model"),
        (lambda: shapetrace.checking(nn.Linear), "Linear is a class, not a model"),
        (lambda: shapetrace.annotate(nn.Linear, X), "Linear is a class, not a model"),
    ],
)
def test_wrong_arguments_in_python_are_one_clear_error(call, words):
    with pytest.raises(ShapetraceError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_train_takes_its_options_by_name(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("the quick brown fox " * 30)
    trained = shapetrace.train("tiny-decoder", book, steps=2, batch=2, seq=8, trace=False)
    assert len(trained.losses) == 2
    with pytest.raises(ShapetraceError, match="unexpected keyword argument 'stps'"):
        shapetrace.train("tiny-decoder", book, stps=2)


README = Path(__file__).parents[2] / "README.md"


def test_readme_has_the_exit_codes():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert [code for code, _ in rows] == ["0", "1", "2", "130"]


MODELS = """
from torch import nn

class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("no reason")

class Interrupted(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt

class Recurses(nn.Module):
    def forward(self, x):
        return self(x)
"""


@pytest.mark.parametrize("name", ["trace", "check", "annotate"])
@pytest.mark.parametrize(
    ("model", "code"), [("Raises", 1), ("Recurses", 1), ("Interrupted", 130), ("Missing", 2)]
)
def test_a_model_that_fails_has_the_same_code_everywhere(
    command, tmp_path, monkeypatch, name, model, code
):
    monkeypatch.chdir(tmp_path)
    file = f"failing_{tmp_path.name.replace('-', '_')}.py"
    Path(file).write_text(MODELS)
    found, _, err = command(name, f"{file}:{model}", "--input", "x:float32[B=2,3]")
    assert found == code
    assert "Traceback" not in err


DOUBLED = """
import torch
from torch import nn

class Experts(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.register_buffer("places", torch.arange(width))

    def forward(self, x):
        assert x.dtype == self.up.weight.dtype == torch.bfloat16
        assert self.places.dtype == torch.int64
        return self.up(x)
"""


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_model_is_traced_and_checked_in_the_dtype_that_is_asked_for(
    command, tmp_path, monkeypatch, device
):
    monkeypatch.chdir(tmp_path)
    Path("doubled.py").write_text(DOUBLED)
    given = ("doubled.py:Experts", "--input", "x:bfloat16[B=2,8]", "--device", device)
    code, out, err = command("trace", *given, "--dtype", "bfloat16")
    assert code == 0, err
    row = next(line for line in out.splitlines() if line.lstrip().startswith("return"))
    assert row.split()[1:7] == ["B", "2*width", "2", "16", "bfloat16", "64"]
    assert command("check", *given, "--dtype", "bfloat16")[0] == 0
    assert command("trace", *given)[0] == 1
