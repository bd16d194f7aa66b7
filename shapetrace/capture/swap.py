"""Put rewritten code into live functions for the length of a trace, and take it out again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from shapetrace.capture.discover import Wanted
from shapetrace.capture.instrument import CodeKey, Instrumented, functions_in, instrument

Recorders = Mapping[str, Callable[..., Any]]


@dataclass(slots=True)
class Swap:
    """Live functions that run rewritten code; `undo` gives each its own code back.

    Attributes:
        functions: The swapped functions with the code they had.
        notes: What was left as it is, and why.
        originals: By rewritten code, the code it stands for.
    """

    functions: list[tuple[FunctionType, CodeType]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    originals: dict[CodeType, CodeType] = field(default_factory=dict)

    def undo(self) -> None:
        """Restore every function; safe to call again after an interruption."""
        while self.functions:
            function, code = self.functions[-1]
            function.__code__ = code
            self.functions.pop()
        if self.originals:
            self._restore_closures()

    def _restore_closures(self) -> None:
        """Functions made during the trace hold rewritten code; give them the original."""
        for function in gc.get_referrers(*self.originals):
            if isinstance(function, FunctionType) and function.__code__ in self.originals:
                function.__code__ = self.originals[function.__code__]
        self.originals.clear()


def swap(wanted: Wanted, recorders: Recorders) -> Swap:
    """Rewrite live functions.

    Args:
        wanted: By source file, the first lines of the functions; None for all of them.
        recorders: The function to call for each constant of `instrument`.

    Returns:
        The swap; the caller must `undo` it.
    """
    result = Swap()
    sources = {file: _noted(file, lines, result.notes) for file, lines in wanted.items()}
    bound: dict[tuple[str, CodeKey], CodeType] = {}
    for function in _live_functions(sources):
        code = function.__code__
        source = sources[code.co_filename]
        if source is not None:
            new = _replacement(code, source, recorders, bound, result)
            if new is not None:
                result.functions.append((function, code))
                function.__code__ = new
    return result


def _noted(file: str, lines: frozenset[int] | None, notes: list[str]) -> Instrumented | None:
    source = instrument(file, lines)
    if source is None:
        notes.append(f"{file}: no readable source; its functions are not seen inside")
    else:
        notes.extend(f"{file}: {name} is not seen inside" for name in source.skipped)
    return source


def _live_functions(files: Collection[str]) -> list[FunctionType]:
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType and thing.__code__.co_filename in files
    ]


def _replacement(
    code: CodeType,
    source: Instrumented,
    recorders: Recorders,
    bound: dict[tuple[str, CodeKey], CodeType],
    result: Swap,
) -> CodeType | None:
    key = (code.co_qualname, code.co_firstlineno)
    template = source.functions.get(key)
    if template is None or not _uses_recorders(template):
        return None
    if not _same_function(code, template):
        result.notes.append(f"{code.co_filename}: {code.co_qualname} differs from its source")
        return None
    place = (code.co_filename, key)
    if place not in bound:
        originals = {key: code, **dict(functions_in(code))}
        bound[place] = _bind(template, recorders, originals, result.originals)
    return bound[place]


def _same_function(code: CodeType, template: CodeType) -> bool:
    """Whether the file still holds the function that is loaded.

    Import hooks (pytest's assertions, jaxtyping's) change code but not a function's face.
    """
    face = ("co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags", "co_freevars")
    arguments = template.co_argcount + template.co_kwonlyargcount
    return all(getattr(code, name) == getattr(template, name) for name in face) and (
        code.co_varnames[:arguments] == template.co_varnames[:arguments]
    )


def _uses_recorders(code: CodeType) -> bool:
    return any(
        (isinstance(constant, str) and constant.startswith("\0shapetrace:"))
        or (isinstance(constant, CodeType) and _uses_recorders(constant))
        for constant in code.co_consts
    )


def _bind(
    template: CodeType,
    recorders: Recorders,
    live: Mapping[CodeKey, CodeType],
    originals: dict[CodeType, CodeType],
) -> CodeType:
    """The template with its string constants replaced by one recording's functions."""
    constants = tuple(
        _bind(constant, recorders, live, originals)
        if isinstance(constant, CodeType)
        else recorders.get(constant, constant)
        if isinstance(constant, str)
        else constant
        for constant in template.co_consts
    )
    code = template.replace(co_consts=constants)
    original = live.get((template.co_qualname, template.co_firstlineno))
    if original is not None and original.co_freevars == code.co_freevars:
        originals[code] = original
    return code
