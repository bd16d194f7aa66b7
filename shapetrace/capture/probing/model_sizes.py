"""The sizes that a model holds: of its weights, and in its attributes."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from shapetrace.capture.values import members
from shapetrace.records.trace import Shape


def parameter_shapes(model: nn.Module) -> dict[str, Shape]:
    """The shape of every parameter and buffer, by path."""
    named = [
        *members.named_parameters(model),
        *members.named_buffers(model),
    ]
    return {name: tuple(tensor.shape) for name, tensor in named}


def attributes(model: nn.Module) -> dict[str, dict[str, int]]:
    """Integers that the user's modules hold, by path of the module.

    Those of torch's own modules (`in_features`) name nothing inside a model, where every
    layer has them; only where such a module is all there is.
    """
    found = {
        path: _whole_numbers(vars(module))
        for path, module in members.named_modules(model)
        if not path or not type(module).__module__.startswith("torch.nn")
    }
    config = getattr(getattr(model, "config", None), "__dict__", {})
    if "" in found:
        found[""] = {**_whole_numbers(config), **found[""]}
    return found


def _whole_numbers(values: Mapping[str, object]) -> dict[str, int]:
    return {
        name: value
        for name, value in values.items()
        if type(value) is int and value > 0 and not name.startswith("_")
    }
