"""Parts in braces of dimension strings (``"B {self.d_k}"``), which jaxtyping asks the arguments.

They are worked out when the call begins and kept as plain text, so that no argument has to
be kept until the annotations are judged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import CodeType
from typing import Any

Held = tuple[tuple[str, str | None, str], ...]
"""For each part its text, what it is worth (None when unknown), and why it has no worth."""

_BRACES = re.compile(r"\{([^{}]+)\}")
_QUIET = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
"""Syntax that calls nothing: evaluating it during a run leaves no trace there."""


def brace_values(texts: Iterable[str], arguments: Mapping[str, Any]) -> Held:
    """What expressions are worth for a call's arguments.

    Args:
        texts: The expressions, without their braces.
        arguments: The call's arguments by name.
    """
    return tuple((text, *_worth(text, arguments)) for text in texts)


def _worth(text: str, arguments: Mapping[str, Any]) -> tuple[str | None, str]:
    code = _compiled(text)
    if code is None:
        return None, ""
    try:
        return str(eval(code, dict(arguments))), ""  # noqa: S307 - as jaxtyping does
    except Exception as error:  # noqa: BLE001 - jaxtyping would raise it where it is enforced
        return None, f"{type(error).__name__}: {error}"


@cache
def _compiled(text: str) -> CodeType | None:
    """The expression's code; None for one that calls something, or is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return None
    if not all(isinstance(node, _QUIET) for node in ast.walk(tree.body)):
        return None
    return compile(tree, "<braces>", "eval")


def filled(dims: str, held: Held) -> tuple[str | None, str, tuple[tuple[str, int], ...]]:
    """A dimension string with what its parts in braces are worth in their place.

    Returns:
        The string, None where a part has no known worth; why, else empty; and the parts
        that are worth a whole number, with their braces.
    """
    known = {text: (value, problem) for text, value, problem in held}
    values: dict[str, int] = {}
    for text in _BRACES.findall(dims):
        value, problem = known.get(text, (None, ""))
        if value is None:
            return None, problem, ()
        if value.isdecimal():
            values[f"{{{text}}}"] = int(value)
    full = _BRACES.sub(lambda part: str(known[part[1]][0]), dims)
    return full, "", tuple(values.items())
