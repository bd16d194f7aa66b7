"""Rewritten functions of a source file, ready to be put into live ones.

The rewritten code (see `rewriter`) is never imported: `swap` puts it into the functions
that are loaded already, for the length of a trace.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType

from shapetrace.capture.source.excerpt import excerpt
from shapetrace.capture.source.rewriter import Rewriter

CodeKey = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Instrumented:
    """A file's rewritten functions, by qualified name and first line."""

    functions: dict[CodeKey, CodeType]


def instrument(file: str, lines: frozenset[int] | None = None) -> Instrumented | None:
    """Rewrite the functions of a source file.

    Args:
        file: Its path, as code objects name it.
        lines: First lines of the functions wanted (those inside them come along); None
            for all.

    Returns:
        The rewritten functions; None when there is no readable source.
    """
    try:
        stamp = Path(file).stat().st_mtime_ns
        linecache.checkcache(file)
    except OSError:
        stamp = 0  # a notebook cell or other source that only linecache knows
    return _instrument(file, lines, stamp)


@lru_cache(maxsize=4096)
def _instrument(file: str, lines: frozenset[int] | None, _stamp: int) -> Instrumented | None:
    source = "".join(linecache.getlines(file))
    if not source:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the file's own, and calls of constants
            tree = _parsed(source, file, lines)
            tree.body = list(_wanted(tree.body, lines))
            rewriter = Rewriter(file)
            rewritten = ast.fix_missing_locations(rewriter.visit(tree))
            code = compile(rewritten, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return Instrumented(dict(functions_in(code)))


def _parsed(source: str, file: str, lines: frozenset[int] | None) -> ast.Module:
    """A file's syntax tree, or that of as much of it as the wanted functions need.

    Raises:
        SyntaxError: The file is no Python of this version.
    """
    part = excerpt(source, lines) if lines is not None else None
    if part is not None and lines is not None:
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(part, file)
            kinds = ast.FunctionDef | ast.AsyncFunctionDef
            found = {first_line(node) for node in ast.walk(tree) if isinstance(node, kinds)}
            if lines <= found:
                return tree
    return ast.parse(source, file)


def _wanted(body: Sequence[ast.stmt], lines: frozenset[int] | None) -> Iterator[ast.stmt]:
    """Of a module's or class's statements, those that hold wanted functions."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if lines is None or first_line(statement) in lines:
                    yield statement
            case ast.ImportFrom(module="__future__"):
                yield statement
            case ast.ClassDef() | ast.If() | ast.Try() | ast.With() | ast.For():
                yield from _container(statement, lines)


def _container(
    statement: ast.ClassDef | ast.If | ast.Try | ast.With | ast.For, lines: frozenset[int] | None
) -> Iterator[ast.stmt]:
    if isinstance(statement, ast.ClassDef):
        statement.body = list(_wanted(statement.body, lines))
        if statement.body:
            yield statement
        return
    for block in ("body", "orelse", "finalbody"):
        yield from _wanted(getattr(statement, block, []), lines)
    for handler in getattr(statement, "handlers", []):
        yield from _wanted(handler.body, lines)


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line that a code object calls its first: that of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def functions_in(code: CodeType) -> Iterator[tuple[CodeKey, CodeType]]:
    """Every function inside a code object, however deep."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from functions_in(constant)
