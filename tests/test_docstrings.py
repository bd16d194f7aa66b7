"""The examples in the docstrings run, and give what they say."""

from __future__ import annotations

import ast
import doctest
import importlib
import sys
from pathlib import Path

import pytest

import shapetrace

_ROOT = Path(shapetrace.__file__).parent


def _documented():
    """Every module, class and function whose docstring holds an example."""
    for file in sorted(_ROOT.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if ">>>" in text:
            module = ".".join(file.relative_to(_ROOT.parent).with_suffix("").parts)
            for node in ast.walk(ast.parse(text)):
                holds = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                if holds and ">>> " in (ast.get_docstring(node) or ""):
                    yield module, getattr(node, "name", "")


@pytest.mark.parametrize(
    ("module", "name"), [pytest.param(*it, id=".".join(it)) for it in _documented()]
)
def test_an_example_runs(module, name, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    home = importlib.import_module(module)
    found = doctest.DocTestFinder().find(getattr(home, name) if name else home, module=home)
    (example,) = (test for test in found if test.examples and test.name.endswith(name))
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_examples_of_the_library_s_face_are_among_them():
    face = {"trace", "record", "forward", "generate", "checking", "annotate", "Traced"}
    assert face <= {name for _, name in _documented()}


def test_forward_returns_what_trace_returns():
    assert type(shapetrace.forward("tiny-decoder", batch=1, seq=3)) is shapetrace.api.Traced
