"""The pytest plugin: in this process, and where that matters in processes of its own."""

import sys
from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch._dynamo  # noqa: F401 - to stay after runs in this process, which forget what they import

from shapetrace.check.findings import Finding
from shapetrace.pytest_plugin import Watcher

pytest_plugins = ["pytester"]

NET = """
from jaxtyping import Float
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        mean: Float[Tensor, "B n"] = x.mean(1)
        return x - mean[:, None]
"""
TESTS = """
import torch
from package.net import Net


def test_net():
    assert Net()(torch.ones(2, 5, 6)).sum() == 0


def test_net_again():
    Net()(torch.ones(2, 4, 6))
"""
SHAPES = """
import pytest
import torch
from package.net import Net


@pytest.fixture
def shapes(shapetrace):
    shapetrace.trace(Net(), torch.ones(2, 5, 6), dims={"B": 2, "n": 5})
    return shapetrace


def test_right(shapes):
    shapes.assert_shapes("x", "B n d")
    shapes.assert_shapes("mean", "B d")
    shapes.assert_shapes("return", "B n _")


@pytest.mark.parametrize(("value", "dims"), [("x", "B d n"), ("mean", "B d n"), ("men", "B")])
def test_wrong(shapes, value, dims):
    shapes.assert_shapes("x", "B n d")
    shapes.assert_shapes(value, dims)
"""
LIGHT = """
import sys


def test_light():
    assert "torch" not in sys.modules
"""


OPTIONS = '[tool.pytest.ini_options]\npythonpath = ["."]\nfilterwarnings = ["error"]\n'
QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")


@pytest.fixture
def written(pytester):
    """Writes a project with a package and tests."""

    def write(tests, settings="", net=NET):
        pytester.mkpydir("package").joinpath("net.py").write_text(net)
        pytester.makepyprojecttoml(OPTIONS + settings)
        pytester.path.joinpath("test_it.py").write_text(tests)

    return write


@pytest.fixture
def project(pytester, written, monkeypatch):
    """Runs pytest in a project; in this process, for importing torch takes seconds.

    Of plugins there is ours alone: others are loaded already, which pytest warns of.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(tests, *arguments, **parts):
        written(tests, **parts)
        before = sys.getprofile()
        ours = ("-p", "shapetrace.pytest_plugin")
        done = pytester.runpytest_inprocess(*QUIET, *ours, *arguments)
        assert sys.getprofile() is before
        return done.ret, done.stdout.str() + done.stderr.str()

    return run


@pytest.fixture
def process(pytester, written):
    """Runs pytest in a project, in a process of its own."""

    def run(tests, *arguments, **parts):
        written(tests, **parts)
        done = pytester.runpytest_subprocess(*QUIET, *arguments)
        return done.ret, done.stdout.str() + done.stderr.str()

    return run


FINDING = (
    "ST101 axis `n` is 6 in Net (local `mean`), but 5 since Net (argument `x`, package/net.py:7)\n"
    '  observed f32[2, 6]   annotated "B n"   package/net.py:8\n'
    "  fix: make `mean` with second axis 5, or correct the annotation\n"
    "  in test_it.py::test_net\n"
)


def test_findings_fail_a_session_that_went_well(project):
    code, out = project(TESTS, "--shapetrace")
    assert "2 passed" in out
    assert FINDING in out
    assert "1 finding; 3 annotations checked" in out
    assert code == 1


@pytest.mark.parametrize("arguments", [(), ("--shapetrace",)])
def test_torch_is_not_imported(process, arguments):
    code, out = process(LIGHT, *arguments)
    assert code == 0, out
    assert ("shapetrace" in out) is bool(arguments)


def test_settings_that_cannot_be(project):
    code, out = project(LIGHT, "--shapetrace", settings="[tool.shapetrace]\nrules = 1\n")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "has an unknown key 'rules'" in out


def test_rules_of_the_settings(project):
    code, out = project(TESTS, "--shapetrace", settings='[tool.shapetrace]\nignore = ["ST101"]\n')
    assert code == 0, out
    assert "0 findings; 3 annotations checked" in out


def test_a_comment_silences(project):
    silent = NET.replace("x.mean(1)", "x.mean(1)  # shapetrace: ignore")
    code, out = project(TESTS, "--shapetrace", net=silent)
    assert code == 0, out
    assert "0 findings, 1 silenced; 3 annotations checked" in out


def test_a_worker_sends_what_it_found(process):
    pytest.importorskip("xdist")
    code, out = process(TESTS, "--shapetrace", "-n", "1")
    assert "2 passed" in out
    assert FINDING in out
    assert "1 finding; 3 annotations checked" in out
    assert code == 1


def test_what_several_workers_found_is_told_once():
    texts = (
        "ST101",
        "size",
        "size",
        "net.py",
        8,
        "f",
        "mean",
        "",
        ("wrong",),
        "f32",
        "n",
        "mend it",
    )
    sent = {"findings": [[asdict(Finding(*texts)), "test"]], "annotations": 3, "silenced": 1}
    watcher = Watcher(SimpleNamespace(), None)
    for output in ({"shapetrace": {**sent, "notes": ["odd"]}}, {}) * 2:
        watcher.pytest_testnodedown(SimpleNamespace(workeroutput=output))
    lines = []
    watcher.pytest_terminal_summary(SimpleNamespace(section=lambda *_, **__: 0, line=lines.append))
    assert "\n".join(lines).count("wrong") == 1
    assert lines[1:] == [
        "  in test",
        "",
        "note: odd",
        "1 finding, 1 silenced; 3 annotations checked",
    ]


def test_the_fixture_asserts_on_a_trace(project):
    right = NET.replace('"B n"]', '"B d"]')
    code, out = project(SHAPES, "--shapetrace", net=right)  # which gives way to the fixture
    assert code == 1
    assert "3 failed, 1 passed" in out
    assert 'AssertionError: x is "B n d" [2, 5, 6], not "B d n": axis `d` is 5, not 6' in out
    assert 'AssertionError: mean is "B d" [2, 6], not "B d n": 2 axes came, not 3' in out
    assert "AssertionError: the trace has no men; did you mean mean?" in out
