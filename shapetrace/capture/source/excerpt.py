"""A source file with only some of its functions in it, each on its own lines.

Reading a file of thousands of lines for the three functions that run takes longer than to run
them. What is cut out here is what Python's own rule for blocks says: a function ends where a
line begins that is not indented deeper. A line that only seems to begin (inside parentheses
or a string) leaves something open, which the parser refuses; then the whole file is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_FUTURE = re.compile(r"from\s+__future__\s")


def excerpt(source: str, firsts: Collection[int]) -> str | None:
    """Only the functions that begin at some lines, and the classes around them.

    Args:
        source: The file's text.
        firsts: First lines of functions, or of their decorators.

    Returns:
        As many lines as the last function needs, all others empty; None where a function
        lies in something else than classes.
    """
    lines = source.splitlines(keepends=True)
    kept: set[int] = {number for number, line in enumerate(lines) if _FUTURE.match(line)}
    for first in firsts:
        start = first - 1
        if start >= len(lines) or not lines[start].strip():
            return None
        headers = _headers(lines, start)
        if headers is None:
            return None
        kept.update(headers)
        kept.update(_block(lines, start))
    last = max(kept, default=-1)
    return "".join(lines[n] if n in kept else "\n" for n in range(last + 1))


def _indent(line: str) -> int | None:
    """How deep a line is indented; None for one that is empty or a comment."""
    bare = line.lstrip()
    return None if not bare or bare.startswith("#") else len(line) - len(bare)


def _block(lines: list[str], start: int) -> Iterator[int]:
    """The lines of a function with its decorators."""
    own = _indent(lines[start]) or 0
    begun = False
    for number in range(start, len(lines)):
        depth = _indent(lines[number])
        ends = depth is not None and depth <= own and begun
        continues = lines[number].lstrip()[:1] in ")]}" or lines[number - 1].rstrip().endswith("\\")
        if ends and not continues:
            return
        begun = begun or lines[number].lstrip().startswith(("def ", "async def "))
        yield number


def _headers(lines: list[str], start: int) -> set[int] | None:
    """The lines that open the classes around a function; None where it lies in anything else."""
    found: set[int] = set()
    depth = _indent(lines[start]) or 0
    number = start
    while depth:
        number -= 1
        if number < 0:
            return None
        here = _indent(lines[number])
        if here is None or here >= depth:
            continue
        last = number
        while lines[number].lstrip()[:1] in (")", "]", "}") or (_indent(lines[number]) or 0) > here:
            number -= 1  # a header of several lines
            if number < 0:
                return None
        if not lines[number].lstrip().startswith("class "):
            return None
        found.update(range(number, last + 1))
        depth = here
    return found
