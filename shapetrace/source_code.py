"""What is said of source code both where it is watched and where annotations are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int, int, int]
"""Where code stands: first line and column, last line and column."""


def own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes in it."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for node in body:
        yield node
        if not isinstance(node, inner):
            yield from own_nodes(list(ast.iter_child_nodes(node)))
