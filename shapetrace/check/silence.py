"""``# shapetrace: ignore`` and ``# shapetrace: ignore[ST302]`` in the source."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

_COMMENT = re.compile(r"#\s*shapetrace:\s*ignore(?:\[([^\]]*)\])?(?:\s|$|#)")


class Silence:
    """The comments of one file, and the lines that each covers.

    A comment covers its own line, and every line of the statement that it stands in; a
    finding about a return value is also covered by one at the function's ``->`` annotation
    or ``def``.
    """

    def __init__(self, source: str) -> None:
        self._comments = dict(_comments(source))
        self._spans: list[tuple[int, int]] = []
        self._returns: list[tuple[int, int, list[int]]] = []
        if self._comments:
            self._read(source)

    def covers(self, line: int, code: str, *, returns: bool = False) -> bool:
        """Whether a finding at a line is silenced."""
        return any(
            not codes or code in codes
            for place in self._lines(line, returns=returns)
            if (codes := self._comments.get(place)) is not None
        )

    def _lines(self, line: int, *, returns: bool) -> Iterator[int]:
        yield line
        for first, last in self._spans:
            if first <= line <= last:
                yield from range(first, last + 1)
        if returns:
            inside = [one for one in self._returns if one[0] <= line <= one[1]]
            if inside:
                yield from max(inside)[2]

    def _read(self, source: str) -> None:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = node.end_lineno or node.lineno
                self._returns.append((node.lineno, last, [node.lineno, *_span(node.returns)]))
            elif isinstance(
                node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.arg
            ):
                self._spans.append((node.lineno, node.end_lineno or node.lineno))


def _span(node: ast.expr | None) -> range:
    return range(0) if node is None else range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _comments(source: str) -> Iterator[tuple[int, frozenset[str]]]:
    """By line, the codes of its comment; none for all of them."""
    if "shapetrace" not in source:
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            found = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if found is not None:
                words = (found[1] or "").replace(",", " ").split()
                yield token.start[0], frozenset(words)
    except (tokenize.TokenError, SyntaxError):
        return
