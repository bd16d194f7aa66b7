"""A part of a file is read as the whole file would be."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import typing

import pytest
from torch.nn.modules import activation, rnn, transformer

from shapetrace.capture.source.excerpt import excerpt
from shapetrace.capture.source.instrument import first_line, instrument
from tests.capture import models_under_test

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree, path=()):
    """Every function that lies in nothing but classes, by path and first line."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield (*path, node.name, first_line(node)), node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, (*path, node.name))


@pytest.mark.parametrize(
    "module",
    [argparse, dataclasses, typing, inspect, activation, rnn, transformer, models_under_test],
    ids=lambda module: module.__name__,
)
def test_each_function_alone_is_read_as_in_its_file(module):
    source = inspect.getsource(module)
    for (*path, line), node in functions(ast.parse(source)):
        part = excerpt(source, {line})
        try:
            found = dict(functions(ast.parse(part))) if part is not None else {}
        except SyntaxError:
            continue  # the whole file is read instead
        if (*path, line) in found:
            alone = ast.dump(found[*path, line], include_attributes=True)
            assert alone == ast.dump(node, include_attributes=True)


ODD = '''
from __future__ import annotations
class Outer(
    object,
):
    """A docstring
that goes on at the margin."""

    @staticmethod
    def first(
        x,
    ):
        text = """
left
"""
# a comment at the margin
        return x, text

    class Inner:
        def second(self):
            return (
1
            )

if True:
    def third():
        return 3
else:
    def third():
        return 4

def fourth(): return 5

def fifth(x):
    y = x \\
+ 1
    return y
'''


def test_what_cannot_be_cut_out_is_read_whole(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text(ODD)
    whole = instrument(str(file)).functions
    lines = {key[1] for key in whole if key[0].rpartition(".")[2] not in ("Outer", "Inner")}
    for line in lines:
        part = instrument(str(file), frozenset({line}))
        assert {key for key in part.functions if key[1] == line} == {
            key for key in whole if key[1] == line
        }
        for key, code in part.functions.items():
            if key[1] == line:
                lines_of = {line for _, _, line in code.co_lines()}
                assert lines_of == {line for _, _, line in whole[key].co_lines()}
