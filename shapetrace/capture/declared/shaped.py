"""Functions and classes whose annotations speak of shapes, and where each annotation stands."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import linecache
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from jaxtyping import AbstractArray
from torch import nn

from shapetrace.capture.declared.namespaces import closure_of, variadic_of
from shapetrace.check.misfit import AnnotationPlace

UNIONS = (typing.Union, types.UnionType)


@dataclass(frozen=True)
class Shaped:
    """A function, or a class with fields, with annotations that speak of shapes.

    Attributes:
        file: Its source file.
        name: Its qualified name, without ``<locals>``.
        hints: By parameter, field or ``return``: the annotation's value.
        lines: By the same names: where it is written.
        variadic: The parameters ``*args`` and ``**kwargs``, whose annotation is that of one item.
        optional: The parameters that are None when they are left out, whatever they declare.
    """

    file: str
    name: str
    hints: Mapping[str, Any]
    lines: Mapping[str, int]
    variadic: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    def __hash__(self) -> int:
        return hash((self.file, self.name))

    def place(self, name: str) -> AnnotationPlace:
        """One of its annotations."""
        return AnnotationPlace(self.file, self.name, name, self.lines.get(name, 0))


def is_array(hint: Any) -> bool:
    """Whether a hint is one of jaxtyping's classes of arrays."""
    return isinstance(hint, type) and issubclass(hint, AbstractArray)


def speaks_of_shape(hint: Any) -> bool:
    """Whether jaxtyping's classes stand in a hint, at any depth."""
    if is_array(hint) or hasattr(hint, "__value__"):  # a `type` statement
        return is_array(hint) or speaks_of_shape(hint.__value__)
    if typing.is_typeddict(hint):
        return shaped_class(hint) is not None
    if getattr(hint, "__module__", "") == "jaxtyping" and hasattr(hint, "leaftype"):
        return speaks_of_shape(hint.leaftype)  # PyTree[...]
    return any(speaks_of_shape(part) for part in typing.get_args(hint))


def replaced(hint: Any, change: Callable[[Any], Any]) -> Any:
    """A hint with each of jaxtyping's classes in it replaced."""
    if is_array(hint):
        return change(hint)
    parts = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if not parts or not speaks_of_shape(hint):
        return hint
    new = tuple(replaced(part, change) for part in parts)
    if origin in UNIONS:
        return functools.reduce(lambda left, right: left | right, new)
    if origin is typing.Annotated:
        return new[0]
    return types.GenericAlias(origin, new) if isinstance(origin, type) else hint


def shaped_function(function: FunctionType) -> Shaped | None:
    """A function's annotations that speak of shapes; None when none does."""
    if "__wrapped__" in function.__dict__:
        return None  # a wrapper's annotations are those of what it wraps
    names: dict[str, Any] | None = None
    hints: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        value = annotation
        if isinstance(value, str):
            if names is None:
                names = {**function.__globals__, **closure_of(function)}
            value = _read(value, names)
        if speaks_of_shape(value):
            hints[name] = value
    if not hints:
        return None
    code = function.__code__
    qualname = code.co_qualname.replace(".<locals>", "")
    lines = _function_lines(code.co_filename).get((code.co_name, code.co_firstlineno), {})
    return Shaped(
        file=code.co_filename,
        name=qualname,
        hints=hints,
        lines=lines,
        variadic=variadic_of(code),
        optional=frozenset(_none_by_default(function)),
    )


def _none_by_default(function: FunctionType) -> Iterator[str]:
    code, defaults = function.__code__, function.__defaults__ or ()
    named = zip(code.co_varnames[: code.co_argcount][::-1], defaults[::-1], strict=False)
    for name, default in (*named, *(function.__kwdefaults__ or {}).items()):
        if default is None:
            yield name


def _read(text: str, names: Mapping[str, Any]) -> Any:
    value: Any = text
    try:
        while isinstance(value, str):
            value = eval(value, dict(names))  # noqa: S307 - the file's own annotation
    except Exception:  # noqa: BLE001 - a finding of its own elsewhere
        return None
    return value


_CLASSES: dict[type, Shaped | None] = {}


def shaped_class(kind: type) -> Shaped | None:
    """A class with annotated fields, looked up once."""
    if kind not in _CLASSES:
        _CLASSES[kind] = _shaped_class(kind)
    return _CLASSES[kind]


def _shaped_class(kind: type) -> Shaped | None:
    """A class whose fields speak of shapes: a dataclass, a named tuple, a typed dict, a module."""
    if issubclass(kind, nn.Module):
        return _shaped_module(kind)
    fields = getattr(kind, "_fields", ()) if issubclass(kind, tuple) else ()
    if not (dataclasses.is_dataclass(kind) or fields or typing.is_typeddict(kind)):
        return None
    try:
        hints = typing.get_type_hints(kind)
    except Exception:  # noqa: BLE001 - a field's annotation that does not resolve says nothing
        return None
    own = {name: hint for name, hint in hints.items() if speaks_of_shape(hint)}
    return _with_fields(kind, own)


def _shaped_module(kind: type) -> Shaped | None:
    """A module's annotated attributes: those of its own class, which its parents may not know."""
    found: dict[str, Any] = {}
    names = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
    for name, annotation in inspect.get_annotations(kind).items():
        value = _read(annotation, names) if isinstance(annotation, str) else annotation
        if speaks_of_shape(value):
            found[name] = value
    return _with_fields(kind, found)


def _with_fields(kind: type, hints: Mapping[str, Any]) -> Shaped | None:
    file = _file_of(kind)
    if not hints or not file:
        return None
    qualname = kind.__qualname__.replace(".<locals>", "")
    return Shaped(file, qualname, hints, _field_lines(file).get(kind.__name__, {}))


def _file_of(kind: type) -> str:
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or ""


@functools.lru_cache(maxsize=256)
def _tree(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


@functools.lru_cache(maxsize=256)
def _function_lines(file: str) -> dict[tuple[str, int], dict[str, int]]:
    """By name and first line (that of a decorator): the lines of a function's annotations."""
    found = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            lines = {one.arg: one.lineno for one in _arguments(node.args)}
            lines["return"] = node.lineno if node.returns is None else node.returns.lineno
            found[node.name, first] = lines
    return found


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (one for one in (arguments.vararg, arguments.kwarg) if one is not None)


@functools.lru_cache(maxsize=256)
def _field_lines(file: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ClassDef):
            found[node.name] = {
                one.target.id: one.lineno
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            }
    return found


def forget() -> None:
    """Forget what files say, which may have changed since."""
    for known in (_tree, _function_lines, _field_lines):
        known.cache_clear()
    _CLASSES.clear()


def shaped_classes(files: Collection[str]) -> Iterator[Shaped]:
    """The classes of some loaded files whose fields speak of shapes."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) in files:
            for thing in list(vars(module).values()):
                if isinstance(thing, type) and thing.__module__ == module.__name__:
                    found = shaped_class(thing)
                    if found is not None:
                        yield found
