"""Which functions a run of a model enters: from a run under a profiler, or from the code."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import nn

from shapetrace.capture.source.registry import is_internal
from shapetrace.capture.values import members
from shapetrace.installed import installed_package

Wanted = Mapping[str, frozenset[int] | None]
"""By source file, the first lines of functions; None for every function of the file."""

_STDLIB = tuple(str(Path(sysconfig.get_paths()[name])) for name in ("stdlib", "platstdlib"))
_UNTRACED = frozenset(
    {
        "_pytest",
        "beartype",
        "filelock",
        "fsspec",
        "functorch",
        "huggingface_hub",
        "hypothesis",
        "jaxtyping",
        "mpmath",
        "networkx",
        "numpy",
        "packaging",
        "pandas",
        "pluggy",
        "regex",
        "requests",
        "rich",
        "safetensors",
        "scipy",
        "sklearn",
        "sympy",
        "tokenizers",
        "torchgen",
        "tqdm",
        "triton",
        "typer",
        "typing_extensions",
    }
)
"""Packages whose functions hold no model's code."""
_PACKAGE = Path(__file__).parents[2]
_MACHINERY = tuple(f"{_PACKAGE / part}{os.sep}" for part in ("api", "capture", "cli"))
_GRAPH = "<eval_with_key>"
_CONTAINERS = nn.Sequential.forward.__code__.co_filename


def is_traced(file: str) -> bool:
    """Whether a file's functions are rewritten: a user's or a package's, torch's modules.

    Of torch only the modules are of use (`nn.Linear.forward`); the rest of torch, the
    standard library and generated code are not entered.
    """
    if file.startswith("<") or not file.endswith(".py"):
        # The code of a graph (torch.fx, torch.export) is kept where notebooks' cells are.
        return file.startswith(_GRAPH) or "ipython-input" in file or "ipykernel" in file
    if is_internal(file):
        return "/torch/nn/modules/" in file and not file.endswith("/module.py")
    package = installed_package(file)
    if package:
        return package not in _UNTRACED and not is_machinery(file)
    return not file.startswith(_STDLIB) and not is_machinery(file)


def is_machinery(file: str) -> bool:
    """Whether a file is of the machinery that runs models, not of a model."""
    return file.startswith(_MACHINERY)


@contextlib.contextmanager
def entered() -> Iterator[dict[str, frozenset[int] | None]]:
    """Collect the functions that are entered inside the block, by a profiler.

    Yields:
        What is wanted; filled in when the block ends.
    """
    codes: set[CodeType] = set()
    add = codes.add

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            add(frame.f_code)

    before = sys.getprofile()
    wanted: dict[str, frozenset[int] | None] = {}
    sys.setprofile(on_event)
    try:
        yield wanted
    finally:
        sys.setprofile(before)
        wanted.update(_by_file(codes))


def _by_file(codes: set[CodeType]) -> Wanted:
    lines: dict[str, set[int]] = {}
    for code in codes:
        if not is_traced(code.co_filename) or code.co_name.startswith("<"):
            continue  # a lambda or a comprehension
        found = lines.setdefault(code.co_filename, set())
        if "<locals>" not in code.co_qualname and code.co_filename != _CONTAINERS:
            found.add(code.co_firstlineno)
    found_in = {file: frozenset(found) for file, found in lines.items()}
    return {**found_in, **_sequential(lines)}


def _sequential(files: Collection[str]) -> Wanted:
    """Of torch's containers only a `Sequential` is called; the rest is getting and setting."""
    first = nn.Sequential.forward.__code__.co_firstlineno
    return {_CONTAINERS: frozenset({first})} if _CONTAINERS in files else {}


def joined(*several: Wanted) -> Wanted:
    """What any of several wants."""
    result: dict[str, frozenset[int] | None] = {}
    for wanted in several:
        for file, lines in wanted.items():
            known = result.get(file, frozenset())
            result[file] = None if lines is None or known is None else known | lines
    return result


def own_files(model: nn.Module | None) -> Wanted:
    """Every function of the files that hold the classes of a model's modules.

    Of torch's own files only the forwards: what helps them is found where it runs.
    """
    if model is None:
        return {}
    forwards = {_unwrapped(_forward(kind)) for kind in {type(m) for m in members.modules(model)}}
    found: dict[str, set[int]] = {}
    for code in (forward.__code__ for forward in forwards if forward is not None):
        if is_traced(code.co_filename):
            found.setdefault(code.co_filename, set()).add(code.co_firstlineno)
    return {file: frozenset(lines) if is_internal(file) else None for file, lines in found.items()}


def graphs_of(model: nn.Module | None) -> Wanted:
    """The forwards of a model's graphs, whose code is written anew for every copy."""
    forwards = (
        [_unwrapped(_forward(type(m))) for m in members.modules(model)] if model is not None else []
    )
    codes = [forward.__code__ for forward in forwards if forward is not None]
    graphs = [code for code in codes if code.co_filename.startswith(_GRAPH)]
    return {code.co_filename: frozenset({code.co_firstlineno}) for code in graphs}


def _unwrapped(function: Any) -> FunctionType | None:
    while (inner := _wrapped(function)) is not None:
        function = inner
    return function if isinstance(function, FunctionType) else None


def _forward(kind: type[nn.Module]) -> Any:
    return getattr(kind, "forward", None)  # a scripted module's class has none


def _wrapped(function: Any) -> Any:
    """What a decorator kept of a function; a scripted module's forward can't be asked."""
    return getattr(function, "__dict__", {}).get("__wrapped__")


def reachable(model: nn.Module | None) -> Wanted:
    """The functions that a model's forward methods can reach by name, without running it.

    Every function that a forward's code names (a global, an attribute of its module, of its
    class or of an imported module) is followed, outside torch and the standard library. What
    is reached only through values (a method of an object passed in) is not found.

    Args:
        model: The model; None finds nothing.
    """
    if model is None:
        return {}
    walk = _Walk()
    for module in members.modules(model):
        walk.follow(_forward(type(module)), module)
    found = {file: frozenset(lines) for file, lines in walk.lines.items()}
    return joined(found, own_files(model))


class _Walk:
    def __init__(self) -> None:
        self.lines: dict[str, set[int]] = {}
        self._seen: set[tuple[int, type]] = set()

    def follow(self, root: Any, owner: object) -> None:
        pending = [root]
        while pending:
            thing = pending.pop()
            key = (id(thing), type(owner))
            if key not in self._seen:
                self._seen.add(key)
                pending.extend(self._reached(thing, owner))

    def _reached(self, thing: Any, owner: object) -> Iterator[Any]:
        match thing:
            case FunctionType():
                yield from self._named(thing, owner)
            case property():
                yield thing.fget
            case functools.partial():
                yield thing.func
            case MethodType() | staticmethod() | classmethod():
                yield thing.__func__

    def _named(self, function: FunctionType, owner: object) -> Iterator[Any]:
        """What a function's code names, when the function itself is worth rewriting."""
        code = function.__code__
        wrapped = _wrapped(function)
        if wrapped is not None:
            yield wrapped
        if not is_traced(code.co_filename):
            return
        self.lines.setdefault(code.co_filename, set()).add(code.co_firstlineno)
        for cell in function.__closure__ or ():
            yield _contents(cell)
        modules = []
        for name in _names(code):
            value = function.__globals__.get(name)
            yield value
            yield vars(owner).get(name)
            yield from (vars(kind)[name] for kind in type(owner).__mro__ if name in vars(kind))
            if isinstance(value, ModuleType):
                modules.append(value)
        for module in modules:
            if is_traced(getattr(module, "__file__", None) or ""):
                yield from (vars(module).get(name) for name in _names(code))


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
