"""The pytest plugin, in processes of its own."""

import subprocess
import sys

import pytest

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


@pytest.fixture
def project(tmp_path):
    """A project with a package and tests; runs pytest in it."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "net.py").write_text(NET)
    options = '[tool.pytest.ini_options]\npythonpath = ["."]\nfilterwarnings = ["error"]\n'
    (tmp_path / "pyproject.toml").write_text(options)

    def run(tests, *arguments, settings="", net=NET):
        (tmp_path / "package" / "net.py").write_text(net)
        (tmp_path / "pyproject.toml").write_text(options + settings)
        (tmp_path / "test_it.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

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
def test_torch_is_not_imported(project, arguments):
    code, out = project(LIGHT, *arguments)
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


def test_several_workers(project):
    pytest.importorskip("xdist")
    code, out = project(TESTS, "--shapetrace", "-n", "2")
    assert "2 passed" in out
    assert out.count("ST101") == 1
    assert code == 1


def test_the_fixture_asserts_on_a_trace(project):
    right = NET.replace('"B n"]', '"B d"]')
    code, out = project(SHAPES, "--shapetrace", net=right)  # which gives way to the fixture
    assert code == 1
    assert "3 failed, 1 passed" in out
    assert 'AssertionError: x is "B n d" [2, 5, 6], not "B d n": axis `d` is 5, not 6' in out
    assert 'AssertionError: mean is "B d" [2, 6], not "B d n": 2 axes came, not 3' in out
    assert "AssertionError: the trace has no men; did you mean mean?" in out
