"""A public name stands for one thing: what a reader searches for is defined in one file."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "shapetrace"
ONE_INTERFACE = {"render"}
"""Each format has its own: the list of reporters chooses between them."""
FORMS = {"model/layers/explicit.py", "model/layers/fused.py"}
PARALLEL = {
    # Chosen between by the configuration, one call for both.
    "attend_self": FORMS,
    "attend_across": FORMS,
    "attend_self_grouped": FORMS,
    "attend_across_grouped": FORMS,
    # The model can be lifted out of the package whole, so it brings its own.
    "did_you_mean": {"errors.py", "model/errors.py"},
    # The console script, and what it runs.
    "main": {"__main__.py", "cli/app.py"},
}
REGISTRIES = {"formula", "rule", "app.callback"}
LIBRARY = {
    *("annotate", "attention", "configs", "forward", "generate", "load", "record", "trace"),
    *("train", "Shapes"),
    # A runner is imported as a whole where it is to run; what stands before torch has its name.
    *("run_generation", "run_pass", "run_training"),
}
"""What Python calls in `api/` is named as what it does below."""
OPTIONS = {"Attention", "Batch", "Level", "TargetText", "Text"}
"""An option's type in `cli/options.py` is named as what it sets."""


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


def is_door(name, place):
    """Whether a file has a name as a way to what bears it further down."""
    return (
        place == f"cli/commands/{name}.py"
        or (name in LIBRARY and place.startswith("api/"))
        or (name in OPTIONS and place == "cli/options.py")
    )


def behind_doors(name, places):
    """The files of a name, without the doors; with doors alone, one of them counts."""
    return {place for place in places if not is_door(name, place)} or {min(places)}


def test_no_public_name_is_defined_twice():
    twice = {
        name: sorted(places)
        for name, places in places_of_names().items()
        if name not in ONE_INTERFACE
        and places != PARALLEL.get(name)
        and len(behind_doors(name, places)) > 1
    }
    assert not twice, "\n".join(f"{name}: {', '.join(found)}" for name, found in twice.items())


def test_each_exception_is_still_needed():
    found = places_of_names()
    assert all(found[name] == places for name, places in PARALLEL.items())
    doors = LIBRARY | OPTIONS
    assert [name for name in sorted(doors) if len(found[name]) < 2] == []
