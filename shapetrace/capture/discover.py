"""Which source files a model's code lies in."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn

from shapetrace.capture.instrument import is_internal

_STDLIB = tuple(str(Path(sysconfig.get_paths()[name])) for name in ("stdlib", "platstdlib"))
_SITE = "site-packages"


def files_of(model: nn.Module | None) -> frozenset[str]:
    """The files that hold a model's classes and the functions that they can reach by name.

    From the methods of every module's class on, every function and class that a method's
    code names as a global is followed, as far as it lies outside torch and the standard
    library. What is reached only through values (a function in a dictionary, an object
    passed in) is not found here; a run under a profiler finds it.

    Args:
        model: The model; None finds nothing.

    Returns:
        Paths, as code objects name them.
    """
    if model is None:
        return frozenset()
    walk = _Walk()
    for kind in {type(module) for module in model.modules()}:
        walk.follow(kind)
    return frozenset(walk.files)


class _Walk:
    def __init__(self) -> None:
        self.files: set[str] = set()
        self._seen: set[int] = set()

    def follow(self, root: Any) -> None:
        pending = [root]
        while pending:
            thing = pending.pop()
            if id(thing) not in self._seen:
                self._seen.add(id(thing))
                pending.extend(self._reached(thing))

    def _reached(self, thing: Any) -> Iterator[Any]:
        if isinstance(thing, type):
            yield from thing.__mro__[1:]
            yield from list(vars(thing).values())
        elif isinstance(thing, FunctionType):
            yield from self._named(thing)
        elif isinstance(thing, property):
            yield thing.fget
        elif isinstance(thing, staticmethod | classmethod):
            yield thing.__func__

    def _named(self, function: FunctionType) -> Iterator[Any]:
        """What a function's code names, when the function itself is worth rewriting."""
        file = function.__code__.co_filename
        if not is_traced(file):
            return
        self.files.add(file)
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            yield wrapped
        for cell in function.__closure__ or ():
            yield _contents(cell)
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType | type):
                yield value
            elif isinstance(value, ModuleType):
                yield from _functions_named(value, function.__code__)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _functions_named(module: ModuleType, code: CodeType) -> Iterator[Any]:
    """What ``module.name`` may mean in some code."""
    if not is_traced(getattr(module, "__file__", None) or ""):
        return
    for name in _names(code):
        value = vars(module).get(name)
        if isinstance(value, FunctionType | type):
            yield value


def is_traced(file: str) -> bool:
    """Whether a file's functions are rewritten: a user's or a package's, torch's modules.

    Of torch only the modules are of use (`nn.Linear.forward`); the rest of torch, the
    standard library and generated code are not entered.
    """
    if not file.endswith(".py"):
        return file.startswith("<ipython-input")
    if is_internal(file):
        return "/torch/nn/modules/" in file and not file.endswith(("module.py", "container.py"))
    if _SITE in file:
        return not any(f"/{name}/" in file for name in _UNTRACED)
    return not file.startswith(_STDLIB)


_UNTRACED = ("jaxtyping", "beartype", "numpy", "shapetrace/capture", "rich", "typer", "_pytest")


def loaded_files() -> frozenset[str]:
    """The files of every module that is loaded and may be traced."""
    files = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
    return frozenset(file for file in files if is_traced(file))
