"""Watch what annotated functions are given and give back: whole values, not tensors alone.

A profile function sees every call, those of generators, of special methods and of functions
that the recorder does not rewrite too. It keeps forms of values, never the values.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch import nn

from shapetrace.capture.declared.forms import ValueForm, form_of
from shapetrace.capture.declared.shaped import Shaped, shaped_class, shaped_classes, shaped_function
from shapetrace.capture.values.tensors_in import SCALARS, stored

_RETURNS = frozenset({dis.opmap["RETURN_VALUE"], dis.opmap.get("RETURN_CONST", -1)})
_YIELDS = dis.opmap["YIELD_VALUE"]
_GENERATES = inspect.CO_GENERATOR
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_UNFIELDED = SCALARS | {dict, list, tuple, torch.Tensor}
YIELD = "yield"
"""Stands for what a generator yields, where a parameter's name or ``return`` stands else."""


@dataclass(frozen=True, slots=True)
class WholeCall:
    """One call of a function with annotations that speak of shapes.

    Attributes:
        function: The function.
        values: Each annotated parameter, in order, ``yield`` and ``return``: what it was.
    """

    function: Shaped
    values: tuple[tuple[str, ValueForm], ...]


@dataclass(slots=True)
class _Watched:
    """A function that is looked at: its parameters, and what is asked of them."""

    code: CodeType
    shaped: Shaped | None
    parameters: tuple[str, ...]
    instructions: bytes


@dataclass(slots=True)
class ValueWatcher:
    """What was given to, and came from, the functions of some files.

    Attributes:
        functions: Those with annotations that speak of shapes, by file, name and first line.
        asynchronous: Those of them that are async, which are not looked into.
        calls: Their distinct calls, each with how often it was seen.
        objects: Forms of objects with annotated fields, by their class.
        classes: The classes of the files with annotated fields.
    """

    functions: dict[tuple[str, str, int], Shaped] = field(default_factory=dict)
    asynchronous: set[tuple[str, str, int]] = field(default_factory=set)
    calls: dict[WholeCall, int] = field(default_factory=dict)
    objects: dict[tuple[type, ValueForm], int] = field(default_factory=dict)
    classes: list[Shaped] = field(default_factory=list)
    _files: frozenset[str] = frozenset()
    _known: dict[int, _Watched] = field(default_factory=dict)
    _running: dict[int, list[tuple[str, ValueForm]]] = field(default_factory=dict)

    def look_at(self, functions: Iterable[FunctionType]) -> None:
        """Have the functions of some files watched."""
        files = set(self._files)
        for function in functions:
            code = function.__code__
            files.add(code.co_filename)
            key = (code.co_filename, code.co_qualname, code.co_firstlineno)
            shaped = shaped_function(function) if key not in self.functions else None
            if shaped is not None:
                self.functions[key] = shaped
                if code.co_flags & _ASYNC:
                    self.asynchronous.add(key)
        self._files = frozenset(files)
        self.classes = list(shaped_classes(self._files))

    def look_at_modules(self, model: nn.Module) -> None:
        """Note the annotated attributes of a model's modules, as they are now."""
        for module in model.modules():
            kind = type(module)
            shaped = shaped_class(kind)
            if shaped is not None:
                held = {name: stored(module, name) for name in shaped.hints}
                items = tuple((k, form_of(v)) for k, v in held.items() if v is not None)
                key = (kind, ValueForm(kind, items=items))
                self.objects[key] = self.objects.get(key, 0) + 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread inside the block; an older profile function rests."""
        before = sys.getprofile()
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(before)
            self._running.clear()

    def _on_event(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event == "call":
            if code.co_filename in self._files:
                self._begin(frame, code)
        elif event == "return":
            if code.co_filename in self._files:
                self._end(frame, code, value)
            elif code.co_name == "__init__" and code.co_filename == "<string>":
                self._note(frame.f_locals.get("self"))  # a dataclass was made

    def _begin(self, frame: FrameType, code: CodeType) -> None:
        watched = self._known.get(id(code)) or self._watched(code)
        if id(frame) in self._running:
            return  # a generator goes on
        values = frame.f_locals if watched.parameters else {}
        if watched.shaped is not None:
            hints = watched.shaped.hints
            names = [name for name in watched.parameters if name in hints and name in values]
            self._running[id(frame)] = [(name, form_of(values[name])) for name in names]
        for name in watched.parameters:
            self._note(values.get(name))

    def _end(self, frame: FrameType, code: CodeType, value: Any) -> None:
        watched = self._known.get(id(code))
        if watched is None:
            return
        instruction = watched.instructions[frame.f_lasti]
        seen = self._running.get(id(frame))
        if instruction == _YIELDS:
            if seen is not None and code.co_flags & _GENERATES:
                seen.append((YIELD, form_of(value)))
            return
        self._running.pop(id(frame), None)
        returned = instruction in _RETURNS and not code.co_flags & (_ASYNC | _GENERATES)
        if returned:
            self._note(value)
        if seen is not None and watched.shaped is not None:
            if returned and "return" in watched.shaped.hints:
                seen.append(("return", form_of(value)))
            call = WholeCall(watched.shaped, tuple(dict.fromkeys(seen)))
            self.calls[call] = self.calls.get(call, 0) + 1

    def _watched(self, code: CodeType) -> _Watched:
        key = (code.co_filename, code.co_qualname, code.co_firstlineno)
        count = code.co_argcount + code.co_kwonlyargcount
        names = count + bool(code.co_flags & inspect.CO_VARARGS)
        names += bool(code.co_flags & inspect.CO_VARKEYWORDS)
        found = _Watched(code, self.functions.get(key), code.co_varnames[:names], code.co_code)
        self._known[id(code)] = found
        return found

    def _note(self, value: Any) -> None:
        """Keep the form of an object whose class has fields that speak of shapes."""
        kind = type(value)
        if kind in _UNFIELDED or isinstance(value, nn.Module) or shaped_class(kind) is None:
            return
        key = (kind, form_of(value))
        self.objects[key] = self.objects.get(key, 0) + 1
