"""The functions that are alive in this process, found quickly many times over.

Every search reads all that the garbage collector knows of: a tenth of a second and more where
large packages are loaded. Many runs in a row need only look among what is new since the first.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FunctionType

_LOCK = threading.Lock()
_KNOWN: dict[str, list[FunctionType]] = {}
"""By file, those of before the outermost `searched_once`, while one is in force."""


def living_functions() -> Iterator[FunctionType]:
    """Every function, the youngest first."""
    yield from _young()
    for functions in list(_KNOWN.values()):
        yield from functions


def functions_of(files: Collection[str]) -> list[FunctionType]:
    """The functions whose code is of some files, the youngest first."""
    found = [function for function in _young() if function.__code__.co_filename in files]
    for file in files:
        found += _KNOWN.get(file, ())
    return found


def _young() -> list[FunctionType]:
    return [thing for thing in gc.get_objects() if type(thing) is FunctionType]


@contextmanager
def searched_once() -> Iterator[None]:
    """Search what is alive now a single time for all searches inside the block.

    It is set aside from the garbage collector until the block ends: searches and collections
    see only what is new. Where something else has set objects aside, nothing is changed.
    """
    if gc.get_freeze_count() or not _LOCK.acquire(blocking=False):
        yield
        return
    try:
        for function in _young():
            _KNOWN.setdefault(function.__code__.co_filename, []).append(function)
        gc.freeze()
        yield
    finally:
        gc.unfreeze()
        _KNOWN.clear()
        _LOCK.release()
