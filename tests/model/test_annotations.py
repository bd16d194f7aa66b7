"""Every tensor of the model is annotated, and every annotation is true."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import shapetrace.model

MODEL = Path(shapetrace.model.__file__).parent
# Modules whose functions compute with tensors.
TYPED = (
    "decoder",
    "encoder",
    "encoder_decoder",
    "generation/filters",
    "layers/attention",
    "layers/blocks",
    "layers/embedding",
    "layers/explicit",
    "layers/feedforward",
    "layers/fused",
    "layers/heads",
    "layers/norm",
    "layers/positions",
    "layers/visibility",
)


@pytest.mark.slow
def test_annotations_hold_on_real_runs():
    program = Path(__file__).with_name("annotated_run.py")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", TYPED)
def test_every_argument_and_return_is_annotated(name):
    tree = ast.parse((MODEL / f"{name}.py").read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            assert function.returns is not None, function.name
            arguments = function.args.args + function.args.kwonlyargs
            bare = [a.arg for a in arguments if a.annotation is None and a.arg != "self"]
            assert not bare, (function.name, bare)


@pytest.mark.parametrize("name", TYPED)
def test_no_check_stands_in_the_ordinary_path(name):
    tree = ast.parse((MODEL / f"{name}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert not node.decorator_list, node.name
        assert not isinstance(node, ast.Assert)
        assert not (isinstance(node, ast.Name) and node.id == "isinstance")
