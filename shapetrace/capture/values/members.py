"""What a module holds, whatever its attributes are called.

A model may have an attribute named `modules`, `children` or `parameters`, which hides the
method of `nn.Module`; and those methods call one another by name. So the registries that
they read are read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch
from torch import nn

_Tensor = TypeVar("_Tensor", bound=torch.Tensor)


def named_modules(
    model: nn.Module, *, remove_duplicate: bool = True
) -> Iterator[tuple[str, nn.Module]]:
    """Every module in a model, itself first, with its dotted name.

    Args:
        model: The model.
        remove_duplicate: Whether a module that has several names comes once. One that lies
            inside itself never comes again below itself.
    """
    seen: set[int] = set()

    def walk(
        name: str, module: nn.Module, above: frozenset[int]
    ) -> Iterator[tuple[str, nn.Module]]:
        if id(module) in above or (remove_duplicate and id(module) in seen):
            return
        seen.add(id(module))
        yield name, module
        inside = above | {id(module)}
        for key, child in named_children(module):
            yield from walk(f"{name}.{key}" if name else key, child, inside)

    yield from walk("", model, frozenset())


def modules(model: nn.Module) -> Iterator[nn.Module]:
    """Every module in a model once, itself first."""
    return (module for _, module in named_modules(model))


def named_children(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules directly inside one, by name; one that has two names comes twice."""
    for key, child in list(module._modules.items()):  # noqa: SLF001 - torch's own registry
        if isinstance(child, nn.Module):
            yield key, child


def own_parameters(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that a module itself holds, by name."""
    return _filled(module._parameters)  # noqa: SLF001 - torch's own registry


def own_buffers(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The buffers that a module itself holds, by name."""
    return _filled(module._buffers)  # noqa: SLF001 - torch's own registry


def named_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Every parameter in a model by each of its dotted names."""
    for path, module in named_modules(model, remove_duplicate=False):
        for name, parameter in own_parameters(module):
            yield f"{path}.{name}" if path else name, parameter


def named_buffers(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Every buffer in a model by each of its dotted names."""
    for path, module in named_modules(model, remove_duplicate=False):
        for name, buffer in own_buffers(module):
            yield f"{path}.{name}" if path else name, buffer


def parameters(model: nn.Module) -> list[nn.Parameter]:
    """Every parameter in a model once."""
    return list({id(tensor): tensor for _, tensor in named_parameters(model)}.values())


def buffers(model: nn.Module) -> list[torch.Tensor]:
    """Every buffer in a model once."""
    return list({id(tensor): tensor for _, tensor in named_buffers(model)}.values())


def _filled(held: Mapping[str, _Tensor | None]) -> Iterator[tuple[str, _Tensor]]:
    for name, tensor in list(held.items()):
        if tensor is not None:
            yield name, tensor


def set_training(model: nn.Module, *, mode: bool) -> nn.Module:
    """Put a model into training or evaluation mode: as its own `train` does, if it has one."""
    if "train" not in vars(model):
        try:
            return model.train(mode)
        except NotImplementedError:
            return model  # an exported program is what it was exported as
        except (TypeError, AttributeError):  # something else is called `children` or `train`
            pass
    for module in modules(model):
        module.training = mode
    return model


def moved(model: nn.Module, device: str) -> nn.Module:
    """A model with its parameters and buffers on a device: as its own `to` does, if it has one."""
    if "to" not in vars(model):
        try:
            return model.to(device)
        except (TypeError, AttributeError):
            pass
    for module in modules(model):
        module._apply(lambda tensor: tensor.to(device), recurse=False)  # noqa: SLF001
    return model
