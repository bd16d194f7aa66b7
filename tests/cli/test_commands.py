"""The commands around `forward`."""

import json

import shapetrace
from shapetrace.model import presets


def test_version(command):
    assert command("--version") == (0, f"shapetrace {shapetrace.__version__}\n", "")


def test_configs_lists_every_preset_with_its_sizes(command):
    code, out, _ = command("configs")
    assert code == 0
    lines = {line.split()[0]: line.split() for line in out.splitlines()}
    assert set(presets()) == set(lines) - {"config"}
    assert lines["gpt2"][1:] == [
        "decoder",
        "12",
        "768",
        "12",
        "12",
        "64",
        "3072",
        "50257",
        "learned",
    ]


def test_configs_fits_a_narrow_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = command("configs")
    assert max(map(len, out.splitlines())) <= 80


def test_report_in_every_format(command, saved, tmp_path):
    for suffix in ("txt", "json", "csv", "md"):
        target = tmp_path / f"x.{suffix}"
        assert command("report", saved, "-o", target) == (0, "", "")
        assert "scores" in target.read_text(encoding="utf-8")
    document = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert document["target"] == "tiny-decoder"


def test_the_library_does_what_the_command_does(saved):
    trace = shapetrace.load(saved)
    assert trace.target == "tiny-decoder"
    assert dict(trace.sizes) == {"B": 2, "n": 13}
    assert [token for token, _ in trace.tokens[1]] == list("a cat")
