"""Watch what kind of value each parameter and return holds: tensors, None, containers.

A profile function sees every call of the functions in some files, those that the recorder
does not rewrite too. It reads values and runs no code of theirs.
"""

from __future__ import annotations

import ast
import dataclasses
import dis
import inspect
import linecache
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from shapetrace.capture.values.tensors_in import stored
from shapetrace.records.structure import ParameterPlace, Structure

_DEPTH = 4
_WIDTH = 64
_RETURNS = frozenset({dis.opmap["RETURN_VALUE"], dis.opmap.get("RETURN_CONST", -1)})
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Observed:
    """The structures seen, by place; each once."""

    def __init__(self) -> None:
        self._found: dict[ParameterPlace, dict[Structure, None]] = {}

    def add(self, place: ParameterPlace, value: Any) -> None:
        """Note a value."""
        self._found.setdefault(place, {})[structure_of(value)] = None

    @property
    def structures(self) -> dict[ParameterPlace, tuple[Structure, ...]]:
        """What was seen so far."""
        return {place: tuple(seen) for place, seen in self._found.items()}


@contextmanager
def observing(files: Collection[str], observed: Observed) -> Iterator[None]:
    """Watch the functions of some files in this thread; an older profile function rests."""
    before = sys.getprofile()
    sys.setprofile(_watcher(files, observed))
    try:
        yield
    finally:
        sys.setprofile(before)


def _watcher(files: Collection[str], observed: Observed) -> Callable[[FrameType, str, Any], None]:
    def_lines = {file: _def_lines(file) for file in files}

    def watch(frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if code.co_filename not in files or event not in ("call", "return"):
            return
        line = def_lines[code.co_filename].get((code.co_name, code.co_firstlineno), 0)
        if line == 0:
            return
        if event == "call":
            for name in _parameters(code):
                if name in frame.f_locals:
                    observed.add((code.co_filename, line, name), frame.f_locals[name])
        elif code.co_code[frame.f_lasti] in _RETURNS and not code.co_flags & _SUSPENDS:
            observed.add((code.co_filename, line, "return"), value)

    return watch


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


def _def_lines(file: str) -> dict[tuple[str, int], int]:
    """Lines of ``def`` by name and first line: code begins at its decorators."""
    linecache.checkcache(file)
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    return {
        (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])): node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def structure_of(value: Any, depth: int = _DEPTH) -> Structure:
    """What kind of value something is, containers followed a few levels."""
    if isinstance(value, torch.Tensor):
        return Structure("ragged" if value.layout is torch.jagged else "tensor")
    if value is None:
        return Structure("none")
    if depth and type(value) in (tuple, list, dict, torch.Size):
        kind: Any = "tuple" if isinstance(value, tuple) else type(value).__name__
        return Structure(kind, items=_items(value, depth))
    name, module = type(value).__qualname__, type(value).__module__
    if depth and _has_fields(value):
        return Structure("fields", name, module, _items(value, depth))
    if depth and isinstance(value, dict | list):
        kind = "dict" if isinstance(value, dict) else "list"
        return Structure(kind, items=_items(value, depth))
    return Structure("class", name, module)


def _has_fields(value: Any) -> bool:
    if isinstance(value, nn.Module | type):
        return False
    return dataclasses.is_dataclass(value) or (
        isinstance(value, tuple) and hasattr(value, "_fields")
    )


def _items(value: Any, depth: int) -> tuple[tuple[str, Structure], ...]:
    return tuple((step, structure_of(item, depth - 1)) for step, item in _stepped(value))


def _stepped(value: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield f".{field.name}", stored(value, field.name)
    elif isinstance(value, dict):
        for key in list(value)[:_WIDTH]:
            yield f"[{key!r}]", dict.__getitem__(value, key)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=False):
            yield f".{name}", item
    else:
        for number, item in enumerate(list(value)[:_WIDTH]):
            yield f"[{number}]", item
