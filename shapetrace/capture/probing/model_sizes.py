"""The sizes that a model holds: of its weights, and in its attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import nn

from shapetrace.capture.values import members
from shapetrace.naming.observations import in_first_layer
from shapetrace.records.trace import Shape


def parameter_shapes(model: nn.Module) -> dict[str, Shape]:
    """The shape of every parameter and buffer, by path."""
    named = [
        *members.named_parameters(model),
        *members.named_buffers(model),
    ]
    return {name: tuple(tensor.shape) for name, tensor in named}


def attributes(model: nn.Module) -> dict[str, dict[str, int]]:
    """Integers that the user's modules hold and that may be sizes, by path of the module.

    Those of torch's own modules (`in_features`) name nothing inside a model, where every
    layer has them; only where such a module is all there is. What only tells a module's
    place among its equals (`layer_idx`) is no size.
    """
    found = {
        path: _whole_numbers(vars(module))
        for path, module in members.named_modules(model)
        if not path or not type(module).__module__.startswith("torch.nn")
    }
    counted = _counting(found)
    found = {
        path: {n: size for n, size in held.items() if (in_first_layer(path), n) not in counted}
        for path, held in found.items()
    }
    if "" in found:
        found[""] = {**configured_sizes(model), **found[""]}
    return found


def configured_sizes(model: nn.Module) -> dict[str, int]:
    """Integers of the configuration that a model carries, which may be sizes."""
    config = getattr(model, "config", None)
    if isinstance(config, Mapping):
        return _whole_numbers(config)
    return _whole_numbers(getattr(config, "__dict__", {}))


def _counting(held: Mapping[str, Mapping[str, int]]) -> set[tuple[str, str]]:
    """Attributes that count equal modules: in each, the number in its path plus a constant."""
    among: dict[tuple[str, str], list[tuple[tuple[int, ...], int]]] = {}
    for path, names in held.items():
        numbers = tuple(int(part) for part in path.split(".") if part.isdigit())
        for name, value in names.items():
            if numbers:
                among.setdefault((in_first_layer(path), name), []).append((numbers, value))
    return {key for key, seen in among.items() if _is_counting(seen)}


def _is_counting(seen: list[tuple[tuple[int, ...], int]]) -> bool:
    for place in range(len(seen[0][0])):
        at = {numbers[place] for numbers, _ in seen}
        if len(at) > 1 and len({value - numbers[place] for numbers, value in seen}) == 1:
            return True
    return False


_NO_SIZE = re.compile(r"(^|_)(idx|index|ids?|pos|position|rank|seed|step|epoch)$")
"""What a name ends in that tells which one, not how many."""


def _whole_numbers(values: Mapping[str, object]) -> dict[str, int]:
    return {
        name: value
        for name, value in values.items()
        if type(value) is int
        and value > 0
        and not name.startswith("_")
        and not _NO_SIZE.search(name)
    }
