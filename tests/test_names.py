"""A public name stands for one thing: what a reader searches for is defined in one file."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "shapetrace"
ONE_INTERFACE = {"render"}
"""Each format has its own: the list of reporters chooses between them."""
PARALLEL = [
    # Chosen between by the configuration, one call for both.
    {"model/layers/explicit.py", "model/layers/fused.py"},
    # The model can be lifted out of the package whole, so it brings its own.
    {"model/errors.py", "errors.py"},
    # A runner is imported as a whole where it is to run; the door has its names.
    {"api/transformer/runners.py", "api/transformer/run_pass.py"},
    {"api/transformer/runners.py", "api/transformer/generate_run.py"},
    {"api/transformer/runners.py", "api/transformer/train_run.py"},
    # Wings beside each other, which must not import each other: a place, a walk of six lines.
    {"annotation/inference/paths.py", "capture/values/code_run.py"},
    {"annotation/inference/bindings.py", "capture/source/syntax.py"},
    # The console script, and what it runs.
    {"__main__.py", "cli/app.py"},
]
REGISTRIES = {"formula", "rule", "app.callback"}
DOORS = ("cli/commands/", "api/", "cli/options.py")
"""A command is named as the function that it calls, what Python calls as what it does below,
and an option's type as what it sets."""


def public_names(path):
    """The public names that a file defines at its top, without those that a decorator takes.

    What is registered (a rule, a formula, a fixture) is called through its registry, never
    by name, and is named as the operation that it speaks of.
    """
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            registered = any(
                isinstance(taken, ast.Call) and ast.unparse(taken.func) in REGISTRIES
                for taken in node.decorator_list
            ) or any(ast.unparse(taken) == "pytest.fixture" for taken in node.decorator_list)
            names = [] if registered else [node.name]
        elif isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def places_of_names():
    places = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in public_names(path):
            places[name].add(path.relative_to(PACKAGE).as_posix())
    return places


def behind_doors(places):
    """The files of a name, without the doors; with one door alone, that one counts."""
    inner = {place for place in places if not place.startswith(DOORS)}
    return inner or {min(places)}


def test_no_public_name_is_defined_twice():
    twice = {
        name: sorted(places)
        for name, places in places_of_names().items()
        if name not in ONE_INTERFACE and places not in PARALLEL and len(behind_doors(places)) > 1
    }
    assert not twice, "\n".join(f"{name}: {', '.join(found)}" for name, found in twice.items())


def test_each_exception_is_still_needed():
    found = list(places_of_names().values())
    assert all(places in found for places in PARALLEL)
