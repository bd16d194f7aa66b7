"""The functions that rewritten code calls, and the events they append."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from shapetrace.capture import events as kinds
from shapetrace.capture import instrument
from shapetrace.capture.elements import SCALARS, elements, stored
from shapetrace.capture.events import Event, Seen
from shapetrace.capture.operators import OperatorMode
from shapetrace.capture.repeats import Key, Replay, Template, call_key, learn
from shapetrace.capture.storages import Storages
from shapetrace.trace.records import StorageKind

_PLAIN = frozenset({torch.Tensor, nn.Parameter})
_strided = torch.strided


class Recorder:
    """Events of one run in one thread.

    Attributes:
        events: What happened, in order.
        storages: The memory that was met.
        mode: Sees the operators; None when they are not wanted.
        alive: Cleared at the end, so that code that outlives the recording is silent.
        replay: The equal call that is running, if one is.
    """

    def __init__(
        self,
        modules: dict[int, int],
        members: Sequence[nn.Module] = (),
        twins: Mapping[int, int] | None = None,
        *,
        operators: bool = True,
    ) -> None:
        """Take what is known of the model.

        Args:
            modules: Module numbers by identity.
            members: The modules, by number.
            twins: Of modules that have an equal, the number that the equals share.
            operators: Whether to see operators, or statements alone.
        """
        self.events: list[Event] = [(kinds.MARK,)]
        self.storages = Storages(self._freed)
        self.mode = OperatorMode(self.events, self.storages) if operators else None
        self.alive = True
        self.replay: Replay | None = None
        self.owner = threading.get_ident()
        self._modules = modules
        self._members = members
        self._twins = dict(twins or {}) if operators else {}
        self._templates: dict[Key, Template | None] = {}
        self._learning: tuple[Key, int, int, int, list[int | None]] | None = None
        self._depth = 0

    def restart(self, modules: Mapping[int, int]) -> None:
        """Forget all events and record another model."""
        self.events[:] = [(kinds.MARK,)]
        self.storages.close()
        self.storages.blocks.clear()
        self._modules.clear()
        self._modules.update(modules)
        self._depth = 0
        self.alive = True

    def close(self) -> None:
        """Stop recording."""
        self.alive = False
        self.storages.close()

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What each constant of rewritten code stands for."""
        see = self._see()
        return {
            instrument.ENTER: self._enter(),
            instrument.EXIT: self._exit(),
            instrument.SEE: see,
            instrument.SEE_ALL: self._see_all(),
            instrument.SEE_ATTRIBUTE: lambda binding, owner, name: see(
                binding, stored(owner, name)
            ),
            instrument.BEGIN: self._begin(),
            instrument.MARK: self._mark(),
            instrument.SHIELD: self._shield,
        }

    # The recording functions are closures over what they need: they run at every statement.

    def _enter(self) -> Callable[..., Any]:
        append, modules, ident = self.events.append, self._modules, threading.get_ident

        def enter(function: int, owner: object) -> None:
            if not self.alive or ident() != self.owner:
                return
            replay = self.replay
            if replay is not None and self._agrees(replay, function, None):
                replay.depth += 1
                return
            self._depth += 1
            module: object = modules.get(id(owner))
            if module is None and isinstance(owner, nn.Module):
                module = type(owner).__qualname__
            append((kinds.ENTER, function, module))

        return enter

    def _exit(self) -> Callable[..., Any]:
        append, ident = self.events.append, threading.get_ident

        def leave(function: int) -> None:
            if not self.alive or ident() != self.owner:
                return
            replay = self.replay
            if replay is not None:
                replay.depth -= 1
                if replay.depth:
                    return
                self._end_replay(replay)
            elif self._learning is not None and self._learning[1] == self._depth:
                self._end_learning()
            self._depth -= 1
            append((kinds.EXIT, function))

        return leave

    def _see(self) -> Callable[..., Any]:
        append, ident, tensor_type = self.events.append, threading.get_ident, torch.Tensor
        live, meet, scalars, mark = self.storages.live, self.storages.meet, SCALARS, (kinds.MARK,)
        unmet: StorageKind = "input" if self.mode is not None else "activation"

        def see(binding: int, value: Any) -> Any:
            if not self.alive or ident() != self.owner:
                return value
            if type(value) in _PLAIN and value.layout is _strided:
                replay = self.replay
                if replay is not None and self._agrees(replay, binding, value):
                    return value
                storage = value.untyped_storage()
                watch = live.get(storage._cdata)  # noqa: SLF001
                block = meet(storage, unmet) if watch is None else watch.block
                seen = (value.shape, value.dtype, block, value.requires_grad, "", None)
                append((kinds.SEE, binding, "", seen))
            elif type(value) in scalars:
                if self.replay is None:
                    append(mark)
            elif isinstance(value, tensor_type):
                replay = self.replay
                if replay is None or not self._agrees(replay, binding, value):
                    append((kinds.SEE, binding, "", self._special(value)))
            else:
                self._see_inside(((binding, value),))
            return value

        return see

    def _see_all(self) -> Callable[..., Any]:
        ident = threading.get_ident

        def see_all(bindings: tuple[int, ...], values: tuple[Any, ...]) -> None:
            if self.alive and ident() == self.owner:
                self._see_inside(zip(bindings, values, strict=True))

        return see_all

    def _see_inside(self, bound: Any) -> None:
        found = [
            (binding, path, item) for binding, value in bound for path, item in elements(value)
        ]
        if self.replay is not None and all(self._continues(*item) for item in found):
            return
        seen = tuple((binding, path, self.seen(item)) for binding, path, item in found)
        self.events.append((kinds.SEE_ALL, seen) if seen else (kinds.MARK,))

    def _mark(self) -> Callable[..., Any]:
        append, ident, event = self.events.append, threading.get_ident, (kinds.MARK,)

        def mark(value: Any = None) -> Any:
            if self.replay is None and self.alive and ident() == self.owner:
                append(event)
            return value

        return mark

    def _shield(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Call what behaves differently under a dispatch mode with none of ours active."""
        mode = self.mode
        if mode is None or not self.alive or threading.get_ident() != self.owner:
            return function
        module = getattr(function, "__module__", None) or ""
        if not (module.startswith("torch") or isinstance(function, type(torch.linalg.svdvals))):
            return function
        return lambda *args, **kwargs: mode.call_without(function, *args, **kwargs)

    def seen(self, tensor: torch.Tensor) -> Seen:
        """What is kept of a tensor."""
        if type(tensor) in _PLAIN and tensor.layout is _strided:
            block = self.storages.index(tensor, "input" if self.mode else "activation")
            return tensor.shape, tensor.dtype, block, tensor.requires_grad, "", None
        return self._special(tensor)

    def _special(self, tensor: torch.Tensor) -> Seen:
        """A subclass or another layout: its properties may fail or run the user's code."""
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001
            sizes = tuple(size if type(size) is int else -1 for size in tensor.shape)
            layout = "" if tensor.layout is _strided else str(tensor.layout).removeprefix("torch.")
            block = self.storages.index(tensor, "input" if self.mode else "activation")
            return sizes, tensor.dtype, block, tensor.requires_grad, layout, tensor.device

    # Equal calls.

    def _begin(self) -> Callable[..., Any]:
        twins, modules, ident = self._twins, self._modules, threading.get_ident

        def begin(owner: object, *arguments: Any) -> None:
            if self.replay is None and self._learning is None and twins:
                number = modules.get(id(owner))
                shared = twins.get(number) if number is not None else None
                if shared is not None and self.alive and ident() == self.owner:
                    self._begin_twin(number, shared, arguments)  # type: ignore[arg-type]

        return begin

    def _begin_twin(self, number: int, shared: int, arguments: Sequence[Any]) -> None:
        """At the start of a call that may be equal to another: learn it, or check it."""
        if torch.is_grad_enabled():
            return  # autograd keeps tensors that no statement names
        function = next(e[1] for e in reversed(self.events) if e[0] == kinds.ENTER)
        key = call_key(shared, function, arguments)
        blocks = [self.storages.index(item, "input") for _, item in elements(tuple(arguments))]
        template = self._templates.get(key)
        if key not in self._templates:
            start, met = len(self.events), len(self.storages.blocks)
            self._learning = (key, self._depth, start, met, [number, *blocks])
        elif template is not None and self.mode is not None and self.mode.pause():
            known = zip(template.arguments, blocks, strict=True)
            more = zip(template.parameters, self._parameters(number), strict=True)
            mapped = {a: b for a, b in (*known, *more) if a is not None and b is not None}
            self.replay = Replay(template, number, mapped)

    def _parameters(self, number: int) -> list[int | None]:
        module = self._members[number]
        tensors = [*module.parameters(), *module.buffers()]
        return [self.storages.index(tensor, "parameter") for tensor in tensors]

    def _end_learning(self) -> None:
        assert self._learning is not None  # noqa: S101 - the caller has looked
        key, _, start, met, (number, *blocks) = self._learning
        self._learning = None
        born = range(met, len(self.storages.blocks))
        assert number is not None  # noqa: S101 - a twin is a module of the model
        events = self.events[start:]
        self._templates[key] = learn(number, events, born, blocks, self._parameters(number))

    def _agrees(self, replay: Replay, number: int, value: torch.Tensor | None) -> bool:
        """Check one report of an equal call; where it differs, watch again from here on."""
        expected = replay.template.expected
        if replay.at < len(expected):
            wanted, shape, adopted = expected[replay.at]
            if wanted == number and (None if value is None else value.shape) == shape:
                replay.at += 1
                if adopted is not None and value is not None:
                    block = self.storages.index(value, "activation")
                    if block is not None:
                        replay.blocks[adopted] = block
                return True
        self._diverge(replay)
        return False

    def _continues(self, binding: int, _: str, value: torch.Tensor) -> bool:
        replay = self.replay
        return replay is not None and self._agrees(replay, binding, value)

    def _end_replay(self, replay: Replay) -> None:
        if replay.at == len(replay.template.expected):
            self._stop_replay(replay, len(replay.template.events))
        else:
            self._diverge(replay)

    def _diverge(self, replay: Replay) -> None:
        """The call is not what it was taken for: keep what agreed, and watch again."""
        template = replay.template
        agreed = replay.at < len(template.position)
        self._stop_replay(replay, template.position[replay.at] if agreed else len(template.events))
        self._templates = {
            key: None if known is template else known for key, known in self._templates.items()
        }
        self._depth += max(replay.depth, 1) - 1
        self.events.append((kinds.LOST,))

    def _stop_replay(self, replay: Replay, end: int) -> None:
        self.replay = None
        self.events.append((kinds.REPEAT, replay.template, replay.module, replay.blocks, end))
        written = {
            replay.blocks.get(event[1], event[1])
            for event in replay.template.events[:end]
            if event[0] == kinds.FREE
        }
        self.events.extend((kinds.FREE, block) for block in replay.freed if block not in written)
        if self.mode is not None:
            self.mode.resume()

    def _freed(self, block: int) -> None:
        if self.replay is not None:
            self.replay.freed.append(block)
        else:
            self.events.append((kinds.FREE, block))
