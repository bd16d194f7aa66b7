"""The tensors that lie behind a tensor or a packed object: what memory they really hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from shapetrace.capture.values import members

_PLAIN = (torch.Tensor, nn.Parameter)
_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def made_later(tensor: torch.Tensor) -> bool:
    """Whether a parameter or buffer is one of a lazy module, which its first call makes."""
    return bool(is_lazy(tensor))


def wrapped_by(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that a wrapper subclass (torchao's, DTensor, jagged) is made of; else nothing.

    Such a tensor has a storage of its own, but only in name: no memory lies behind it.
    """
    outer: Any = tensor
    if type(tensor) in _PLAIN or not bool(is_traceable_wrapper_subclass(outer)):
        return []
    try:
        names = outer.__tensor_flatten__()[0]
        inner = [getattr(tensor, name) for name in names]
    except Exception:  # noqa: BLE001 - a subclass's own code, which the run does not need
        return []
    return [part for outer in inner for part in (wrapped_by(outer) or [outer])]


def bytes_of(tensor: torch.Tensor) -> int:
    """The bytes that a tensor's elements hold: of a wrapper what is in it, indices included."""
    if made_later(tensor):
        return 0
    inner = wrapped_by(tensor)
    if inner:
        return sum(bytes_of(part) for part in inner)
    if tensor.layout is torch.sparse_coo:
        return tensor._indices().nbytes + tensor._values().nbytes  # noqa: SLF001 - needs no coalescing
    if tensor.layout in _COMPRESSED:
        return sum(int(getattr(tensor, name)().nbytes) for name in _COMPRESSED[tensor.layout])
    if tensor.layout is not torch.strided:
        return 0  # torch keeps no such number
    return tensor.untyped_storage().nbytes() if tensor.is_nested else tensor.nbytes


def packed_in(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in a module's packed objects, as quantised layers have in place of parameters.

    Yields:
        Each tensor with a name: ``weight`` or ``bias``, numbered where there are several.
    """
    packed = _packed_objects(module)
    half = torch.float16 in (vars(module).get("dtype"), vars(module).get("weight_dtype"))
    tensors = [tensor for value in packed for tensor in _unpacked(value)]
    met: dict[int, torch.Tensor] = {}
    counts = {"weight": 0, "bias": 0}
    for tensor in tensors:
        address = tensor.untyped_storage()._cdata  # noqa: SLF001 - a bias may lie in two objects
        if address in met or not (tensor.is_floating_point() or tensor.is_quantized):
            continue  # whole numbers say how it was packed
        met[address] = tensor
        name = "weight" if tensor.dim() > 1 else "bias"
        # Halves are unpacked as singles.
        real = tensor.half() if half and name == "weight" else tensor
        yield f"{name}_{counts[name]}" if counts[name] else name, real
        counts[name] += 1


def packed_shape(value: torch.ScriptObject) -> tuple[int, ...] | None:
    """The shape of a packed weight; None for an object that holds none."""
    shapes = (tuple(tensor.shape) for tensor in _unpacked(value) if tensor.dim() > 1)
    return next(shapes, None)


def is_packed(model: nn.Module) -> bool:
    """Whether a model holds packed objects, as quantised ones do."""
    return any(_packed_objects(module) for module in members.modules(model))


def _packed_objects(module: nn.Module) -> list[torch.ScriptObject]:
    """The packed objects of a module: a scripted one's own object is none."""
    if isinstance(module, torch.jit.ScriptModule):
        return []
    return [value for value in list(vars(module).values()) if isinstance(value, torch.ScriptObject)]


def _unpacked(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in what an object of torch's C++ side is pickled as."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _unpacked(item)
    elif isinstance(value, torch.ScriptObject):
        try:
            state = value.__getstate__()
        except Exception:  # noqa: BLE001 - one that can't be pickled tells nothing
            return
        yield from _unpacked(state)
