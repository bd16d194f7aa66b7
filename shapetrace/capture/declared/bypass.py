"""Let a model that enforces its own annotations run past what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from shapetrace.capture.declared.enforcement import checkers

_INNER = "\0shapetrace:inner"


@contextmanager
def without_enforcement() -> Iterator[None]:
    """Have type checkers' wrappers call what they wrap and check nothing, inside the block.

    What they would refuse, `check` finds itself; a model that raises at the first of it would
    hide the rest.
    """
    changed: list[tuple[FunctionType, CodeType]] = []
    try:
        for wrapper, inner in list(checkers()):
            changed.append((wrapper, wrapper.__code__))
            wrapper.__code__ = _passing_on(wrapper.__code__, inner)
        yield
    finally:
        while changed:
            wrapper, code = changed[-1]
            wrapper.__code__ = code
            changed.pop()


def _passed(*args: Any, **kwargs: Any) -> Any:
    inner: Any = "\0shapetrace:inner"
    return inner(*args, **kwargs)


def _passing_on(code: CodeType, inner: FunctionType) -> CodeType:
    """Code that calls a function, for a wrapper with that code: as many variables stay bound."""
    own = _passed.__code__
    constants = tuple(inner if constant == _INNER else constant for constant in own.co_consts)
    return own.replace(co_consts=constants, co_freevars=code.co_freevars, co_name=code.co_name)
