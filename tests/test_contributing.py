"""What CONTRIBUTING.md names is there."""

import ast
import re
from pathlib import Path

import pytest

import shapetrace

PACKAGE = Path(shapetrace.__file__).parent
TEXT = (PACKAGE.parent / "CONTRIBUTING.md").read_text("utf-8")
HOPS = re.findall(r"`([\w/]+\.py):([\w.]+)`", TEXT)
FOLDERS = re.findall(r"^    (?:  )?(\w+)/ ", TEXT, re.MULTILINE)


def test_it_shows_three_ways():
    assert len(HOPS) > 30


@pytest.mark.parametrize(("file", "name"), HOPS)
def test_a_hop_is_there(file, name):
    inside = ast.parse((PACKAGE / file).read_text("utf-8")).body
    for part in name.split("."):
        found = [node for node in inside if getattr(node, "name", None) == part]
        assert found, f"{file} has no {name}"
        inside = getattr(found[0], "body", [])


def test_every_folder_is_on_the_map():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    wings = {path.parent.name for path in (PACKAGE / "capture").glob("*/__init__.py")}
    assert folders <= {*FOLDERS}
    assert {*FOLDERS} <= folders | wings
    assert wings - {*FOLDERS} <= {"values", "weightless"}
