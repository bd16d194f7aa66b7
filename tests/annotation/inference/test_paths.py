"""Ways to a return value that did not run: found, and widened by what the code shows."""

import ast
import textwrap

import pytest

from shapetrace.annotation.inference.paths import OpenPath, Ran, open_paths, widened
from shapetrace.annotation.plan.annotation import (
    NONE,
    Array,
    Plain,
    TupleOf,
    Union,
    UnknownPart,
)
from shapetrace.capture.values.code_run import CodeRun

X = Array("Float", ("B", "n"))
PAIR = TupleOf((X, X))


def paths(body, *arguments):
    """The open paths of a function `f` with some lines, after a call of it for each arguments."""
    source = "def f(x, a=None, flag=False):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    space = {}
    exec(compile(source, "/paths.py", "exec"), space)
    code = CodeRun()
    with code.watching(["/paths.py"]):
        for given in arguments:
            space["f"](*given)
    (node,) = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
    ran = Ran(tuple(code.spans()["/paths.py"]))
    return [(one.line, one.steps, one.shows) for one in open_paths(node, ran, frozenset({"Out"}))]


CASES = [
    ("return x\n", [(1,)], []),
    ("if a is None:\n    return x\nreturn x * 2\n", [(1,)], [(4, (), None)]),
    ("if a is None:\n    return x\nreturn x * 2\n", [(1,), (1, 2)], []),
    ("if a:\n    return None\nreturn x\n", [(1,)], [(3, (), NONE)]),
    ("if a:\n    return\nreturn x\n", [(1,)], [(3, (), NONE)]),
    ("return x if a is None else None\n", [(1,)], [(2, (), NONE)]),
    ("return x if a is None else a\n", [(1,), (1, 2)], []),
    ("if a:\n    return x, None, 1\nreturn x, x, x\n", [(1,)],
     [(3, ("[0]",), None), (3, ("[1]",), NONE), (3, ("[2]",), Plain("int"))]),
    ("y, z = x, None\nif a:\n    z = x + a\nreturn y, z\n", [(1,)], [(4, ("[1]",), None)]),
    ("y, z = x, None\nif a:\n    z = x + a\nreturn y, z\n", [(1,), (1, 2)], []),
    ("if a:\n    y = None\nelse:\n    y = x\nreturn y\n", [(1,)], [(3, (), NONE)]),
    ("if a:\n    y = x\nelse:\n    raise ValueError\nreturn y\n", [(1, 1)], []),
    ("y = x\nfor i in range(a or 0):\n    y = y + i\nreturn y\n", [(1,)], [(4, (), None)]),
    ("y = x\nwhile a:\n    y = None\n    break\nreturn y\n", [(1,)], [(4, (), NONE)]),
    ("y = 2 * x\nif flag:\n    y = y.contiguous()\nreturn y\n", [(1,)], []),
    ("y = 2 * x\nif flag:\n    y = F.dropout(y, 0.1)\nreturn y\n", [(1,)], []),
    ("y = 2 * x\nif flag:\n    y += 1\nreturn y\n", [(1,)], []),
    ("y = 2 * x\nif flag:\n    y = y.mean(1)\nreturn y\n", [(1,)], [(4, (), None)]),
    ("try:\n    y = x + 1\nexcept ValueError:\n    y = None\nreturn y\n", [(1,)], [(5, (), NONE)]),
    ("with open('/dev/null') as file:\n    if a:\n        return file\n    y = x\nreturn y\n", [(1,)],
     [(4, (), None)]),
    ("y = x\nif a:\n    y = a\nz = y\nreturn z\n", [(1,)], [(4, (), None)]),
    ("match a:\n    case None:\n        return x\n    case _:\n        return 1.0\n", [(1,)],
     [(6, (), Plain("float"))]),
    ("if a:\n    return Out(x)\nreturn x\n", [(1,)], [(3, (), Plain("Out"))]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "arguments", "wanted"), CASES, ids=[case[0] for case in CASES])
def test_ways_that_did_not_run(body, arguments, wanted):
    assert paths(body, *arguments) == wanted


@pytest.mark.parametrize(
    ("found", "steps", "shows", "wanted"),
    [
        (X, (), NONE, Union((X, NONE))),
        (X, (), None, None),
        (PAIR, ("[1]",), NONE, TupleOf((X, Union((X, NONE))))),
        (PAIR, ("[0]",), None, TupleOf((UnknownPart(), X))),
        (Union((PAIR, NONE)), ("[1]",), Plain("int"), Union((TupleOf((X, Union((X, Plain("int"))))), NONE))),
        (X, ("[1]",), NONE, None),
    ],
)  # fmt: skip
def test_widened(found, steps, shows, wanted):
    assert widened(found, OpenPath(1, steps, shows)) == wanted
