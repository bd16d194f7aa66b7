"""Which calls are certain to run equal operators: all that they can read is equal.

A call can read its arguments, its module, globals, closures, the values of tensors, and
whatever else its code knows of. So it is only of shapetrace's own layers that it is known
what they read: their arguments, the attributes and the kinds of the parameters of their
modules, and torch's switches. All of it is looked at when the call begins, and a call with
anything in it that is not known by its contents (another's class, a hook, an attribute that
someone has put there, a mode that intercepts calls) has no key. It is watched in full, as
are all calls of other people's modules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from shapetrace.capture.values import members
from shapetrace.capture.values.quietly import PLAIN
from shapetrace.capture.values.tensors_in import SCALARS

CallKey = tuple[Any, ...]

_OWN_MODULE = "shapetrace.model."
_OWN_CODE = str(Path(__file__).parents[2] / "model")
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_HOOKS = tuple(name for name in vars(nn.Module()) if name.endswith("_hooks"))
_SWITCHES: tuple[Callable[[], object], ...] = (
    torch.is_inference_mode_enabled,
    torch.get_default_dtype,
    torch.are_deterministic_algorithms_enabled,
    torch.backends.cuda.flash_sdp_enabled,
    torch.backends.cuda.math_sdp_enabled,
    torch.backends.cuda.mem_efficient_sdp_enabled,
    torch.backends.cuda.cudnn_sdp_enabled,
)


class _UnknownError(Exception):
    """Something that a call can read is not known by its contents."""


def is_own_code(file: str) -> bool:
    """Whether a source file holds layers of which it is known what they read."""
    return file.startswith(_OWN_CODE)


def twins(model: nn.Module, numbers: Mapping[int, int]) -> frozenset[int]:
    """The numbers of the modules that may have calls equal to those of another.

    Args:
        model: The whole model.
        numbers: Module numbers by identity.
    """
    known: dict[CallKey, list[int]] = {}
    for module in members.modules(model):
        if _is_own(type(module)) and vars(module)["_modules"]:
            key = _key_of(functools.partial(_module, module))
            if key is not None:
                known.setdefault(key, []).append(numbers[id(module)])
    return frozenset(member for equal in known.values() if len(equal) > 1 for member in equal)


def call_key(module: nn.Module, function: int, arguments: Sequence[Any]) -> CallKey | None:
    """What an equal call has in common with this one; None where that is not certain.

    Args:
        module: The module that is called, at the beginning of its call.
        function: Number of the function that runs.
        arguments: What it was given.
    """
    if _is_intercepted():
        return None
    return _key_of(
        lambda: (function, _switches(), _module(module), *(_value(item) for item in arguments))
    )


def _key_of(describe: Callable[[], CallKey]) -> CallKey | None:
    try:
        return describe()
    except _UnknownError:
        return None


def _is_intercepted() -> bool:
    """Whether code of others may run inside the call, or see its tensors as something else."""
    return (
        torch._C._len_torch_function_stack() > 0  # noqa: SLF001 - there is no public way
        or torch._C._len_torch_dispatch_stack() > 1  # noqa: SLF001
        or torch._C._functorch.peek_interpreter_stack() is not None  # noqa: SLF001
        or torch_module._has_any_global_hook()  # noqa: SLF001
    )


def _switches() -> CallKey:
    """The settings of torch that choose among operators."""
    casts = tuple(
        torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device)
        for device in ("cpu", "cuda")
    )
    return *casts, *(switch() for switch in _SWITCHES)


def _is_own(kind: type) -> bool:
    return kind.__module__.startswith(_OWN_MODULE)


def _module(module: nn.Module) -> CallKey:
    """A module's class, attributes and kinds of parameters, all the way down."""
    own = vars(module)
    if not _is_own(type(module)) or any(own[hooks] for hooks in _HOOKS):
        raise _UnknownError
    return (
        type(module),
        own["training"],
        *_tensors(own["_parameters"]),
        *_tensors(own["_buffers"]),
        *((name, _value(value)) for name, value in own.items() if name not in _OF_EVERY_MODULE),
        *((name, child and _module(child)) for name, child in own["_modules"].items()),
    )


def _tensors(table: Mapping[str, torch.Tensor | None]) -> Iterator[CallKey]:
    for name, tensor in table.items():
        yield name, None if tensor is None else _tensor(tensor)


def _tensor(tensor: torch.Tensor) -> CallKey:
    if type(tensor) not in PLAIN or tensor.layout is not torch.strided or tensor.is_nested:
        raise _UnknownError
    return (
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.is_inference(),
    )


def _value(value: Any) -> Any:
    """What makes two values equal for the operators that run: a tensor's kind, else itself."""
    kind = type(value)
    if kind in SCALARS:
        return kind, value
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if kind is tuple:
        return tuple(_value(item) for item in value)
    if kind is functools.partial:
        return _value(value.func), _value(value.args), *_items(value.keywords)
    if isinstance(value, nn.Module):
        return _module(value)
    if _is_own(kind):
        return kind, *_items(vars(value))
    if _is_known_function(value):
        return value
    raise _UnknownError


def _items(table: Mapping[str, Any]) -> Iterator[CallKey]:
    return ((name, _value(item)) for name, item in table.items())


def _is_known_function(value: Any) -> bool:
    if isinstance(value, FunctionType) and is_own_code(value.__code__.co_filename):
        return value.__closure__ is None
    name = getattr(value, "__name__", "")
    return value is getattr(torch.nn.functional, name, None)
