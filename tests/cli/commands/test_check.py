"""``shapetrace check`` from the command line: formats, settings, exit codes."""

import json

import pytest

NET = """
from jaxtyping import Float
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B d"]:
        mean: Float[Tensor, "B n"] = x.mean(1)
        return mean


class Right(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        return x + 1


class Broken(nn.Module):
    def forward(self, x: Float[Tensor, "B n"]):
        raise ValueError("no reason")


class Bare(nn.Module):
    def forward(self, x):
        return x + 1
"""
INPUT = ("--input", "x:float32[B=2,n=5,6]")


@pytest.fixture
def net(tmp_path, monkeypatch):
    """A folder with models, which is the current one; the module's name is new each time."""
    name = f"net_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(NET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return f"{name}.py"


def test_formats(command, net):
    code, out, err = command("check", f"{net}:Net", *INPUT, "--format", "concise")
    assert code == 1
    assert out == (
        f"{net}:8: ST101 axis `n` is 6 in Net (local `mean`), but 5 since Net (argument `x`, "
        f"{_folder(net)}{net}:7)\n"
    )
    others = ("Right.forward (`x`, `return`)", "Broken.forward (`x`)")  # of the same file
    idle = "".join(f"not checked: {_folder(net)}{net}: {other} did not run\n" for other in others)
    # as asked; both sizes larger, in either order; both doubled, then each alone
    assert err == idle + f"{net}:Net: 1 finding; 3 annotations checked in 6 runs\n"
    code, out, _ = command("check", f"{net}:Net", *INPUT, "--format", "github")
    assert code == 1
    assert out.startswith(f"::error file={net},line=8,title=shapetrace ST101 (size)::axis `n` is 6")
    assert out.count("\n") == 1
    assert "%0Afix: make `mean` with second axis 5, or correct the annotation" in out
    code, out, _ = command("check", f"{net}:Net", *INPUT, "--format", "json")
    found = json.loads(out)
    assert code == 1
    assert found["format_version"] == 1
    assert found["targets"] == [
        {
            "target": f"{net}:Net",
            "runs": [
                {"B": 2, "n": 5},
                {"B": 3, "n": 6},
                {"B": 6, "n": 3},
                {"B": 4, "n": 10},
                {"B": 4},
                {"n": 10},
            ],
            "annotations": 3,
            "values": 18,
            "silenced": 0,
            "notes": [],
            "unchecked": found["targets"][0]["unchecked"],
            "error": None,
        }
    ]
    assert [line.partition(": ")[2] for line in found["targets"][0]["unchecked"]] == [
        "Right.forward (`x`, `return`) did not run",
        "Broken.forward (`x`) did not run",
    ]
    (one,) = found["findings"]
    assert (one["code"], one["rule"], one["kind"], one["line"]) == ("ST101", "size", "size", 8)
    assert (one["function"], one["name"], one["with"]) == ("Net.forward", "mean", {})


def _folder(_):
    from pathlib import Path  # noqa: PLC0415

    return f"{Path.cwd().name}/"


def test_settings_name_what_plain_check_runs(command, net, tmp_path, monkeypatch):
    settings = f"""
[tool.shapetrace]
ignore = ["size"]

[[tool.shapetrace.targets]]
target = "{net}:Net"
input = ["x:float32[B=2,n=5,6]"]

[[tool.shapetrace.targets]]
target = "{net}:Right"
input = "x:float32[B=2,n=5,6]"
"""
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    code, out, err = command("check")
    assert (code, out) == (0, "")
    assert err.count("0 findings") == 2
    assert command("check", "--select", "ST101")[0] == 1


def test_a_right_model_a_bare_one_and_one_that_fails(command, net):
    code, out, err = command("check", f"{net}:Right", *INPUT)
    assert (code, out) == (0, "")
    code, out, err = command("check", f"{net}:Bare", *INPUT)
    assert (code, out) == (0, "")
    assert "no annotation was met in 6 runs; `shapetrace annotate` writes them" in err
    code, out, err = command("check", f"{net}:Broken", *INPUT)
    assert code == 1
    assert out.startswith("ST102 3 axes in Broken (argument `x`), but 2 declared\n")
    assert f"error: {net}:Broken raised ValueError: no reason; it was checked up to there" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.py:Net"], "no input is given for net.py:Net"),
        (["--input", "x:float32[2]"], "options for a model are given, but no TARGET"),
        ([], "no TARGET is given, and"),
        (["net.py:Net", *INPUT, "--select", "ST9"], "there is no rule 'ST9'"),
        (
            ["net.py:Net", *INPUT, "--select", "ST101", "--ignore", "ST101"],
            "rule ST101 is both selected and ignored; choose one",
        ),
        (["nowhere.py:Net", *INPUT], "there is no file nowhere.py"),
        (["net.py:Net", *INPUT, "--inputs", "a.pt"], "not both"),
    ],
)
def test_bad_input_is_one_line_and_code_2(command, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")
    code, out, err = command("check", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[tool.shapetrace]\nselct = []", "has an unknown key 'selct': did you mean 'select'?"),
        ("[tool.shapetrace]\nselect = ['ST0']", "there is no rule 'ST0'"),
        ("[tool.shapetrace]\nselect = 3", "select = 3 is no list of strings"),
        ("[[tool.shapetrace.targets]]\ninput = []", "has no `target`"),
        ("[tool.shapetrace.targets]\na = 1", "targets is no list"),
        (
            "[[tool.shapetrace.targets]]\ntarget = 'a:b'\ninput = ['x']\ninputs = 'a.pt'",
            "`input` and `inputs` are both given",
        ),
        ("[[tool.shapetrace.targets]]\ntarget = 'a:b'\nseed = 'x'", "seed = 'x' is no int"),
        ("[tool", "cannot read"),
    ],
)
def test_bad_settings_are_one_line_and_code_2(command, tmp_path, monkeypatch, table, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    code, out, err = command("check")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_the_rules_stand_in_the_help(command):
    from shapetrace.check.rules import RULES  # noqa: PLC0415

    code, out, _ = command("check", "--help")
    assert code == 0
    for rule in RULES:
        assert f"{rule.code}  {rule.name}" in out
