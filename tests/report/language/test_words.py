"""Every word that a report uses for itself is there in Chinese too."""

import ast
import re
from pathlib import Path

import shapetrace.report as package
from shapetrace.report.language.words import word
from shapetrace.units import FLOP_CONVENTION

_HEADINGS = {"heading", "names"}
_MODULES = sorted(Path(package.__file__).parent.rglob("*.py"))


def words_of(tree):
    """The literals given to `word`, and those of the tuples that headings are made of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"word", "_said"}:
            yield from literals(node.args[0])
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in _HEADINGS:
            yield from literals(node.value)


def literals(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from literals(item)


def test_each_is_translated():
    used = {text for path in _MODULES for text in words_of(ast.parse(path.read_text("utf-8")))}
    assert {"gradient", "pass", "read by", "parameters"} <= used
    same = {"FLOPs", "n", "m"}
    missing = [text for text in used - same if not re.search("[\u4e00-\u9fff]|/", word(text, "zh"))]
    assert not missing


def test_words_that_are_put_together_are_translated():
    kinds = ("encode", "prefill", "decode")
    sources = ("counted from the operators", "counted from the closed form")
    for text in (*kinds, *sources, FLOP_CONVENTION):
        assert re.search("[\u4e00-\u9fff]", word(text, "zh"))
