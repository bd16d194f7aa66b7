"""From a traceback to the statement, and the part of it, that failed."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, FunctionType, TracebackType

from shapetrace.capture.source.discover import is_traced
from shapetrace.capture.source.registry import is_internal

_SPAN = 3
"""Lines of a statement that are shown."""


@dataclass(frozen=True, slots=True)
class FramePlace:
    """Where a frame was when the exception went through it.

    Attributes:
        frame: The frame, with its variables.
        file: Its source file.
        line: The line.
        statement: The statement there; None without source.
        node: The innermost part of it that was running.
    """

    frame: FrameType
    file: str
    line: int
    statement: ast.stmt | None = None
    node: ast.AST | None = None

    @property
    def text(self) -> str:
        """The statement's source; of one that holds others, the head."""
        if self.statement is None:
            return linecache.getline(self.file, self.line).strip()
        first = self.statement.lineno
        last = self.statement.end_lineno or first
        body = getattr(self.statement, "body", None)
        if body:
            last = max(first, body[0].lineno - 1)
        lines = [linecache.getline(self.file, number).rstrip() for number in range(first, last + 1)]
        if len(lines) > _SPAN:
            around = self.line - first
            lines = lines[max(0, around - 1) : around + 2]
        indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        return "\n".join(line[indent:] for line in lines)


def places(error: BaseException) -> list[FramePlace]:
    """The frames that an exception went through, outermost first, with what ran in each."""
    return [_place(step) for step in _steps(error.__traceback__)]


def _steps(step: TracebackType | None) -> Iterator[TracebackType]:
    while step is not None:
        yield step
        step = step.tb_next


def _place(step: TracebackType) -> FramePlace:
    frame = step.tb_frame
    code = frame.f_code
    file, line = code.co_filename, step.tb_lineno
    tree = _tree(file)
    if tree is None:
        return FramePlace(frame, file, line)
    statement = _statement_at(tree, line)
    spans = next(islice(code.co_positions(), step.tb_lasti // 2, None), None)
    node = _node_at(statement, spans) if statement is not None and spans is not None else None
    return FramePlace(frame, file, line, statement, node)


@lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _statement_at(tree: ast.AST, line: int) -> ast.stmt | None:
    """The innermost statement that a line lies in."""
    found = None
    level: list[ast.AST] = [tree]
    while level:
        inside = [node for outer in level for node in ast.iter_child_nodes(outer)]
        level = [node for node in inside if _spans(node, line)]
        found = next((node for node in reversed(level) if isinstance(node, ast.stmt)), found)
    return found


def _spans(node: ast.AST, line: int) -> bool:
    """Whether a line lies in a node; nodes without lines, such as handlers' parts, may."""
    start: int | None = getattr(node, "lineno", None)
    if start is None:
        return True
    end: int | None = getattr(node, "end_lineno", None)
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([start, *(decorator.lineno for decorator in decorators)])
    return first <= line <= (end or start)


def function_at(file: str, code: CodeType) -> ast.FunctionDef | None:
    """The source of a function."""
    tree = _tree(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            if code.co_firstlineno in (first, node.lineno):
                return node
    return None


def class_at(file: str, kind: type, method: ast.FunctionDef) -> ast.ClassDef | None:
    """The source of the class that a method stands in."""
    tree = _tree(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__ and method in node.body:
            return node
    return None


def _node_at(
    statement: ast.stmt, span: tuple[int | None, int | None, int | None, int | None]
) -> ast.AST | None:
    line, end_line, column, end_column = span
    for node in ast.walk(statement):
        own = tuple(
            getattr(node, name, None)
            for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")
        )
        if own == (line, end_line, column, end_column) and isinstance(node, ast.expr | ast.stmt):
            return node.value if isinstance(node, ast.Expr) else node
    return None


def blamed(found: list[FramePlace]) -> int | None:
    """Which frame is to blame: the innermost of code that torch did not bring.

    Args:
        found: The frames, outermost first.

    Returns:
        Its index; that of the innermost of torch's modules when nothing else ran; None
        when there is no frame at all.
    """
    for accept in (_is_own, _is_module):
        for number in range(len(found) - 1, -1, -1):
            if accept(found[number].file):
                return number
    return len(found) - 1 if found else None


def _is_own(file: str) -> bool:
    return is_traced(file) and not is_internal(file)


def _is_module(file: str) -> bool:
    return is_traced(file) and is_internal(file)


def callers(found: list[FramePlace], blame: int) -> list[FramePlace]:
    """The calls in user code that led to a frame, outermost first."""
    return [place for place in found[:blame] if _is_own(place.file)]


def conditions(place: FramePlace) -> list[ast.AST]:
    """The tests of the ``if`` that a statement stands directly under."""
    tree = _tree(place.file)
    return [
        node.test
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.If) and any(inner is place.statement for inner in node.body)
    ]


def first_assignment(kind: type, name: str) -> tuple[str, int] | None:
    """The first place in a class's source that sets ``self.name``."""
    init = vars(kind).get("__init__")
    file = init.__code__.co_filename if isinstance(init, FunctionType) else ""
    tree = _tree(file) if file else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            for inner in ast.walk(node):
                match inner:
                    case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                        if attr == name:
                            return file, inner.lineno
    return None
