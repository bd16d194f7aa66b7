"""The functions that rewritten code calls, and the events they append."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from shapetrace.capture import events as kinds
from shapetrace.capture import instrument
from shapetrace.capture.events import Event, Seen
from shapetrace.capture.operators import OperatorMode
from shapetrace.capture.storages import Storages

_PLAIN = (torch.Tensor, nn.Parameter)
_SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device})
_DEPTH = 4
_WIDTH = 64


class Recorder:
    """Events of one run in one thread.

    Attributes:
        events: What happened, in order.
        storages: The memory that was met.
        alive: Cleared at the end, so that code that outlives the recording is silent.
    """

    def __init__(self, modules: Mapping[int, int], *, operators: bool = True) -> None:
        self.events: list[Event] = [(kinds.MARK,)]
        self.storages = Storages(lambda block: self.events.append((kinds.FREE, block)))
        self.mode = OperatorMode(self.events, self.storages) if operators else None
        self.alive = True
        self._modules = modules
        self._owner = threading.get_ident()

    def close(self) -> None:
        """Stop recording."""
        self.alive = False
        self.storages.close()

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What each constant of rewritten code stands for."""
        return {
            instrument.ENTER: self._enter(),
            instrument.EXIT: self._exit(),
            instrument.SEE: self._see(),
            instrument.SEE_ALL: self._see_all(),
            instrument.SEE_ATTRIBUTE: self._see_attribute(),
            instrument.BEGIN: lambda: None,
            instrument.MARK: self._mark(),
            instrument.SHIELD: self._shield(),
        }

    def seen(self, tensor: torch.Tensor) -> Seen:
        """What is kept of a tensor."""
        if type(tensor) in _PLAIN and tensor.layout is torch.strided:
            return Seen(
                tensor.shape,
                tensor.dtype,
                tensor.device,
                tensor.nbytes,
                self.storages.index(tensor, "activation", len(self.events)),
                tensor.requires_grad,
                "",
            )
        return self._seen_special(tensor)

    def _seen_special(self, tensor: torch.Tensor) -> Seen:
        """A subclass or another layout: its properties may fail or run the user's code."""
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001
            sizes = tuple(size if type(size) is int else -1 for size in tensor.shape)
            layout = "" if tensor.layout is torch.strided else str(tensor.layout)[6:]
            try:
                nbytes = tensor.nbytes
            except (NotImplementedError, RuntimeError):
                nbytes = 0
            return Seen(
                sizes,
                tensor.dtype,
                tensor.device,
                nbytes if type(nbytes) is int else 0,
                self.storages.index(tensor, "activation", len(self.events)),
                tensor.requires_grad,
                layout,
            )

    # The recording functions are closures over what they need: they run at every statement.

    def _active(self) -> bool:
        return self.alive and threading.get_ident() == self._owner

    def _enter(self) -> Callable[..., Any]:
        append, modules, active = self.events.append, self._modules, self._active

        def enter(function: int, owner: object) -> None:
            if active():
                module: object = modules.get(id(owner))
                if module is None and isinstance(owner, nn.Module):
                    module = type(owner).__qualname__
                append((kinds.ENTER, function, module))

        return enter

    def _exit(self) -> Callable[..., Any]:
        append, active = self.events.append, self._active

        def leave(function: int) -> None:
            if active():
                append((kinds.EXIT, function))

        return leave

    def _see(self) -> Callable[..., Any]:
        append, active, seen = self.events.append, self._active, self.seen
        tensor_type, scalars, mark = torch.Tensor, _SCALARS, (kinds.MARK,)

        def see(binding: int, value: Any) -> Any:
            if isinstance(value, tensor_type):
                if active():
                    append((kinds.SEE, binding, "", seen(value)))
            elif type(value) in scalars:
                append(mark)
            elif active():
                found = tuple((binding, path, seen(item)) for path, item in elements(value))
                append((kinds.SEE_ALL, found) if found else mark)
            return value

        return see

    def _see_all(self) -> Callable[..., Any]:
        append, active, seen = self.events.append, self._active, self.seen

        def see_all(bindings: tuple[int, ...], values: tuple[Any, ...]) -> None:
            if active():
                found = tuple(
                    (binding, path, seen(item))
                    for binding, value in zip(bindings, values, strict=True)
                    for path, item in elements(value)
                )
                append((kinds.SEE_ALL, found))

        return see_all

    def _see_attribute(self) -> Callable[..., Any]:
        see = self._see()

        def see_attribute(binding: int, owner: object, name: str) -> None:
            see(binding, _stored(owner, name))

        return see_attribute

    def _mark(self) -> Callable[..., Any]:
        append, active, event = self.events.append, self._active, (kinds.MARK,)

        def mark(value: Any = None) -> Any:
            if active():
                append(event)
            return value

        return mark

    def _shield(self) -> Callable[..., Any]:
        mode, active = self.mode, self._active

        def shield(function: Callable[..., Any]) -> Callable[..., Any]:
            module = getattr(function, "__module__", None) or ""
            if mode is None or not active() or not _is_torch(function, module):
                return function
            return lambda *args, **kwargs: mode.call_without(function, *args, **kwargs)

        return shield


def _is_torch(function: object, module: str) -> bool:
    return module.startswith("torch") or isinstance(function, type(torch.linalg.svdvals))


def _stored(owner: object, name: str) -> object:
    """An attribute's value without running a property or ``__getattr__``."""
    own = getattr(owner, "__dict__", {})
    for table in (own, own.get("_buffers", {}), own.get("_parameters", {})):
        if name in table:
            return table[name]
    return None


def elements(value: Any, path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors inside a container, each with its place: ``[0]``, ``['mask']``, ``.logits``.

    Args:
        value: Anything; what is neither a tensor nor a known container holds none.
        path: The place of `value` itself.
        depth: How many containers deep to look.

    Yields:
        Place and tensor, in order.
    """
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth:
        for place, item in _items(value):
            if type(item) not in _SCALARS:
                yield from elements(item, path + place, depth - 1)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a container of a kind that can be read without running its code."""
    if isinstance(value, nn.Module):
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield f".{field.name}", _stored(value, field.name)
    elif isinstance(value, dict):
        for key in list(value)[:_WIDTH]:
            yield f"[{key!r}]", dict.__getitem__(value, key)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=False):
            yield f".{name}", item
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value[:_WIDTH]):
            yield f"[{number}]", item
