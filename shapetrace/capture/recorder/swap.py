"""Put rewritten code into live functions for the length of a trace, and take it out again.

Only `__code__` is exchanged: whoever holds the function (a bound method, a partial, another
decorator) runs the new code, while its identity, defaults, closure and attributes stay. So a
function is left as it is, and the trace's notes say so, where its code can't be exchanged
without a change that the model could notice: its file can't be read, or holds another
function by now (`_same_function`), or its closure has other variables. A call that is already
running goes on with the code that it began with, so nothing is swapped but around a whole call.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType

import torch

from shapetrace.capture.recorder.hooks import TAPS
from shapetrace.capture.source.discover import Wanted
from shapetrace.capture.source.instrument import CodeKey, Instrumented, functions_in, instrument
from shapetrace.capture.source.live_functions import functions_of
from shapetrace.errors import ShapetraceError

_LOCK = threading.Lock()
"""Code is swapped for the whole process, so one swap at a time."""

_COMPILING = ("torch._dynamo", "torch.nn.attention.flex_attention")
"""Where one of these is loaded, something may be compiled: flex attention compiles itself."""

BACKGROUND: list[Callable[[], None]] = []
"""What ends a swap that gives way to any other, while one is in force."""


@dataclass(slots=True)
class Swap:
    """Live functions that run rewritten code; `undo` gives each its own code back.

    Attributes:
        functions: The swapped functions with the code they had.
        notes: What was left as it is, and why.
        originals: By rewritten code, the code it stands for.
        active: Whether it is in force.
    """

    functions: list[tuple[FunctionType, CodeType]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    originals: dict[CodeType, CodeType] = field(default_factory=dict)
    active: bool = False
    _eager: AbstractContextManager[object] | None = None

    def uncompiled(self) -> None:
        """Let what ``torch.compile`` was given run as it is written, until `undo`.

        Dynamo can't compile rewritten code. Without it in this process nothing is compiled,
        and importing it would cost a second.
        """
        if any(name in sys.modules for name in _COMPILING):
            self._eager = torch.compiler.set_stance("force_eager")
            self._eager.__enter__()

    def undo(self) -> None:
        """Restore every function, also when Ctrl-C comes in the middle."""
        interrupted: KeyboardInterrupt | None = None
        while self.active:
            try:
                self._restore()
                self.active = False
                _LOCK.release()
            except KeyboardInterrupt as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def _restore(self) -> None:
        while self.functions:
            function, code = self.functions[-1]
            function.__code__ = code
            self.functions.pop()
        if self._eager is not None:
            self._eager.__exit__(None, None, None)
            self._eager = None
        if self.originals:
            self._restore_closures()

    def _restore_closures(self) -> None:
        """Functions made during the trace hold rewritten code; give them the original."""
        for function in gc.get_referrers(*self.originals):
            if isinstance(function, FunctionType) and function.__code__ in self.originals:
                function.__code__ = self.originals[function.__code__]
        self.originals.clear()


def swap(wanted: Wanted) -> Swap:
    """Rewrite live functions.

    Args:
        wanted: By source file, the first lines of the functions; None for all of them.

    Returns:
        The swap; the caller must `undo` it.

    Raises:
        ShapetraceError: Another swap is in force in this process.
    """
    while BACKGROUND:
        BACKGROUND.pop()()
    if not _LOCK.acquire(blocking=False):
        raise ShapetraceError(
            "another trace is running in this process; end it before starting a new one"
        )
    result = Swap(active=True)
    try:
        _put_in(wanted, result)
        result.uncompiled()
    except BaseException:
        result.undo()
        raise
    return result


def _put_in(wanted: Wanted, result: Swap) -> None:
    sources = {file: _noted(file, lines, result.notes) for file, lines in wanted.items()}
    for function in functions_of(sources) if sources else ():
        code = function.__code__
        source = sources[code.co_filename]
        new = _replacement(code, source, result) if source is not None else None
        if new is not None:
            result.functions.append((function, code))
            function.__code__ = new


def _noted(file: str, lines: frozenset[int] | None, notes: list[str]) -> Instrumented | None:
    source = instrument(file, lines)
    if source is None:
        notes.append(f"{file}: no readable source; its functions are not seen inside")
    return source


def _replacement(code: CodeType, source: Instrumented, result: Swap) -> CodeType | None:
    new = _bound(source).get((code.co_qualname, code.co_firstlineno))
    if new is None:
        return None
    if not _same_function(code, new):
        result.notes.append(f"{code.co_filename}: {code.co_qualname} differs from its source")
        return None
    inner = dict(functions_in(code))
    for key, rewritten in functions_in(new):
        if key in inner and inner[key].co_freevars == rewritten.co_freevars:
            result.originals[rewritten] = inner[key]
    return new


def _same_function(code: CodeType, rewritten: CodeType) -> bool:
    """Whether the file still holds the function that is loaded.

    Import hooks (pytest's assertions, jaxtyping's) change code but not a function's face.
    """
    face = ("co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags", "co_freevars")
    arguments = rewritten.co_argcount + rewritten.co_kwonlyargcount
    return all(getattr(code, name) == getattr(rewritten, name) for name in face) and (
        code.co_varnames[:arguments] == rewritten.co_varnames[:arguments]
    )


@lru_cache(maxsize=4096)
def _bound(source: Instrumented) -> dict[CodeKey, CodeType]:
    """A file's functions that report, with the taps in place; kept, so that they stay warm."""
    reporting = {key: code for key, code in source.functions.items() if _reports(code)}
    return {key: _bind(code) for key, code in reporting.items()}


def _reports(code: CodeType) -> bool:
    return any(
        constant in TAPS
        if isinstance(constant, str)
        else isinstance(constant, CodeType) and _reports(constant)
        for constant in code.co_consts
    )


def _bind(template: CodeType) -> CodeType:
    """The template with its string constants replaced by the functions they stand for."""
    constants = tuple(
        _bind(constant)
        if isinstance(constant, CodeType)
        else TAPS.get(constant, constant)
        if isinstance(constant, str)
        else constant
        for constant in template.co_consts
    )
    return template.replace(co_consts=constants)
