"""Copies without weights of tensors and of torch's own modules, to try calls on.

The live module is neither called nor changed: its copy has meta tensors for parameters and
buffers, no hooks, and draws nothing.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as _of_torch


class NotOfTorch(Exception):  # noqa: N818 - a signal inside this package, not an error
    """The module's code is not torch's own, and running it may do anything."""


def light(value: Any) -> Any:
    """A tensor's copy on the meta device; anything else, lists included, as light."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            return torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device="meta"
            )
    if type(value) in (list, tuple):
        return type(value)(light(item) for item in value)
    return value


def module_without_values(module: nn.Module, instead: Mapping[int, nn.Module]) -> nn.Module:
    """A copy of one of torch's modules that computes nothing.

    Args:
        module: The module.
        instead: Other modules in the place of some in it, by identity.

    Raises:
        NotOfTorch: If it, or a module in it, is of another package, or hooks watch them all.
    """
    if id(module) in instead:
        return instead[id(module)]
    watched = _of_torch._global_forward_hooks or _of_torch._global_forward_pre_hooks  # noqa: SLF001
    if watched or not type(module).__module__.startswith("torch.nn."):
        raise NotOfTorch
    copy: nn.Module = object.__new__(type(module))
    state = dict(vars(module))
    hooks = [k for k, held in state.items() if k.endswith("_hooks") and isinstance(held, dict)]
    state |= {name: OrderedDict() for name in hooks}
    state["_parameters"] = {name: light(p) for name, p in state["_parameters"].items()}
    state["_buffers"] = {name: light(b) for name, b in state["_buffers"].items()}
    state["_modules"] = {
        name: None if inner is None else module_without_values(inner, instead)
        for name, inner in state["_modules"].items()
    }
    state["training"] = module.training and "Norm" in type(module).__name__
    vars(copy).update(state)
    if isinstance(module, nn.RNNBase):
        names = module._flat_weights_names  # noqa: SLF001 - as its own `__setattr__` does
        vars(copy)["_flat_weights"] = [getattr(copy, name, None) for name in names]
    return copy


def made_anew(module: nn.Module, changed: Mapping[str, Any]) -> nn.Module:
    """One of torch's modules with other arguments, without weights.

    Args:
        module: The module.
        changed: The arguments of its constructor that are to differ.

    Raises:
        NotOfTorch: If its constructor cannot be known from it.
    """
    kind = type(module)
    if not kind.__module__.startswith("torch.nn."):
        raise NotOfTorch
    signature = inspect.signature(nn.RNNBase.__init__ if _is_recurrent(module) else kind.__init__)
    arguments: dict[str, Any] = {}
    for name, parameter in list(signature.parameters.items())[1:]:
        if name.startswith("_") or name in {"mode", "device", "dtype"}:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = changed[name] if name in changed else _held(module, name)
        if value is not inspect.Parameter.empty:
            arguments[name] = value
    weight = next(iter(module.parameters()), None)
    dtype = weight.dtype if weight is not None else None
    with torch.no_grad():
        made = kind(**arguments, device="meta", dtype=dtype)
    return module_without_values(made, {})


def _is_recurrent(module: nn.Module) -> bool:
    return isinstance(module, nn.RNNBase)


def _held(module: nn.Module, name: str) -> Any:
    """What a module was made with, as far as it keeps it."""
    if name in {"bias", "add_bias_kv"}:
        held = ("in_proj_bias", "bias") if name == "bias" else ("bias_k",)
        found = [getattr(module, other) for other in held if hasattr(module, other)]
        value = found[0] if found else inspect.Parameter.empty
        return value if isinstance(value, bool) else value is not None
    return getattr(module, name, inspect.Parameter.empty)
