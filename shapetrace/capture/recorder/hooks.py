"""The functions that rewritten code calls, at every statement.

There is one set for the whole process, so that rewritten code is made once and stays warm;
they report to the recorder that is active, in the thread that activated it, and otherwise
do nothing. They are written for speed: the common case first, and no call that a look-up
can save.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch import nn

from shapetrace.capture.recorder import events as kinds
from shapetrace.capture.recorder.recorder import Recorder
from shapetrace.capture.source import registry
from shapetrace.capture.source.braces import brace_values
from shapetrace.capture.values.quietly import PLAIN, is_overheard, quietly
from shapetrace.capture.values.tensors_in import is_container, stored

_strided = torch.strided
_MARKED = (kinds.MARK,)


class _Active:
    """Who is recording."""

    __slots__ = ("recorder",)
    recorder: Recorder | None


_active = _Active()
_active.recorder = None


def activate(recorder: Recorder | None) -> None:
    """Let a recorder hear what rewritten code reports; None for nobody."""
    _active.recorder = recorder


def enter(function: int, owner: object) -> None:
    """A function begins, called on `owner` or on nothing."""
    recorder = _active.recorder
    if recorder is None or recorder.thread != get_ident():
        return
    replay = recorder.replay
    if replay is not None and recorder.agrees(replay, function, None):
        replay.depth += 1
        return
    recorder.depth += 1
    module: object = recorder.modules.get(id(owner))
    if module is None and isinstance(owner, nn.Module):
        module = type(owner).__qualname__
    recorder.append((kinds.ENTER, function, module))


def begin(owner: object, *arguments: Any) -> None:
    """A forward has been given its arguments."""
    recorder = _active.recorder
    if recorder is not None and recorder.twins and recorder.thread == get_ident():
        recorder.begin(owner, arguments)


def leave(function: int) -> None:
    """A function ends, by returning or raising."""
    recorder = _active.recorder
    if recorder is None or recorder.thread != get_ident():
        return
    replay = recorder.replay
    if replay is not None:
        replay.depth -= 1
        if replay.depth:
            return
        recorder.end_replay(replay)
    elif recorder.learning is not None and recorder.learning.depth == recorder.depth:
        recorder.end_learning(recorder.learning)
    recorder.depth -= 1
    recorder.append((kinds.EXIT, function))


def see(binding: int, value: Any) -> Any:  # noqa: C901 - the hot path, written out
    """A statement has bound a value; it is passed on."""
    recorder = _active.recorder
    if recorder is None or recorder.thread != get_ident():
        return value
    if is_overheard():
        return quietly(see, binding, value)
    kind = type(value)
    if kind in PLAIN and value.layout is _strided:
        replay = recorder.replay
        if replay is not None and recorder.agrees(replay, binding, value):
            return value
        try:
            storage, shape = value.untyped_storage(), recorder.sizes[value.shape]
        except (NotImplementedError, RuntimeError):  # inside vmap; of a nested tensor
            recorder.append((kinds.SEE, binding, "", recorder.seen(value)))
            return value
        known = recorder.live.get(storage._cdata)  # noqa: SLF001 - data_ptr() is 0 on meta
        block = recorder.meet(storage) if known is None else known[0]
        seen = (shape, value.dtype, block, value.requires_grad, "", None)
        recorder.append((kinds.SEE, binding, "", seen))
    elif kind in recorder.opaque:
        if recorder.replay is None:
            recorder.append(_MARKED)
    elif isinstance(value, torch.Tensor):
        replay = recorder.replay
        if replay is None or not recorder.agrees(replay, binding, value):
            recorder.append((kinds.SEE, binding, "", recorder.seen(value)))
    elif is_container(kind):
        recorder.see_inside(((binding, value),))
    else:
        recorder.opaque.add(kind)
        if recorder.replay is None:
            recorder.append(_MARKED)
    return value


def see_all(bindings: tuple[int, ...], values: tuple[Any, ...]) -> None:
    """One statement has bound several names."""
    recorder = _active.recorder
    if recorder is None or recorder.thread != get_ident():
        return
    if is_overheard():
        quietly(see_all, bindings, values)
        return
    opaque = recorder.opaque
    for value in values:
        if type(value) not in opaque:
            recorder.see_inside(zip(bindings, values, strict=True))
            return
    if recorder.replay is None:
        recorder.append(_MARKED)


def see_attribute(binding: int, owner: object, name: str) -> None:
    """A statement has set an attribute."""
    see(binding, stored(owner, name))


def hold(function: int, arguments: dict[str, Any]) -> None:
    """A function whose annotations have parts in braces has been given its arguments."""
    recorder = _active.recorder
    if recorder is not None and recorder.replay is None and recorder.thread == get_ident():
        texts = registry.REGISTRY.functions[function].braces
        recorder.append((kinds.HOLD, quietly(brace_values, texts, arguments)))


def mark(value: Any = None) -> Any:
    """A statement that bound nothing has ended; a value is passed on."""
    recorder = _active.recorder
    if recorder is not None and recorder.replay is None and recorder.thread == get_ident():
        recorder.append(_MARKED)
    return value


def passed(number: int) -> None:
    """A function that is not seen inside of has been entered."""
    recorder = _active.recorder
    if recorder is not None and recorder.thread == get_ident():
        recorder.passed[number] = None


def shield(function: Callable[..., Any]) -> Callable[..., Any]:
    """What behaves differently under a dispatch mode, made to be called with none of ours."""
    recorder = _active.recorder
    if recorder is None or recorder.mode is None or recorder.thread != get_ident():
        return function
    module = getattr(function, "__module__", None) or ""
    if not (module.startswith("torch") or isinstance(function, type(torch.linalg.svdvals))):
        return function
    mode = recorder.mode
    return lambda *args, **kwargs: mode.call_without(function, *args, **kwargs)


TAPS: dict[str, Callable[..., Any]] = {
    registry.ENTER: enter,
    registry.EXIT: leave,
    registry.SEE: see,
    registry.SEE_ALL: see_all,
    registry.SEE_ATTRIBUTE: see_attribute,
    registry.BEGIN: begin,
    registry.HOLD: hold,
    registry.MARK: mark,
    registry.SHIELD: shield,
    registry.PASS: passed,
}
"""What each constant of rewritten code stands for."""
