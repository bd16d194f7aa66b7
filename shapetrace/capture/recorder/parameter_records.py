"""Records of what a model holds: parameters, buffers, and the tensors in packed objects."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from shapetrace.capture.recorder.storages import Storages
from shapetrace.capture.values import members
from shapetrace.capture.values.inner_tensors import bytes_of, made_later, packed_in
from shapetrace.capture.values.tensors_in import sizes_of
from shapetrace.records.trace import ParameterRecord, StorageKind


def parameter_records(model: nn.Module | None, storages: Storages) -> tuple[ParameterRecord, ...]:
    """A record per name of every parameter, then of every buffer, then of what is packed.

    Those that a first call will make (of a lazy module) have none yet.

    Args:
        model: The model; None has nothing.
        storages: Numbers the memory.
    """
    if model is None:
        return ()
    parameters = members.named_parameters(model)
    buffers = members.named_buffers(model)
    return (
        *(_record(name, p, storages, "parameter") for name, p in parameters if not made_later(p)),
        *(_record(name, b, storages, "buffer") for name, b in buffers if not made_later(b)),
        *_packed(model),
    )


def waits(model: nn.Module | None) -> bool:
    """Whether a model has parameters or buffers that its first call will make."""
    held = [] if model is None else [*members.parameters(model), *members.buffers(model)]
    return any(made_later(tensor) for tensor in held)


def _record(
    name: str, tensor: torch.Tensor, storages: Storages, kind: StorageKind
) -> ParameterRecord:
    block = storages.index(tensor, kind)
    if block is not None:  # one that the run has made was taken for an activation
        nbytes, _, device = storages.blocks[block]
        storages.blocks[block] = nbytes, kind, device
    return ParameterRecord(
        name,
        sizes_of(tensor),
        str(tensor.dtype).removeprefix("torch."),
        bytes_of(tensor),
        -1 if block is None else block,
        trainable=tensor.requires_grad,
        buffer=kind == "buffer",
        offset=0 if block is None else _offset(tensor),
    )


def _offset(tensor: torch.Tensor) -> int:
    """Elements before a tensor in its block; only plain layouts have a place in one."""
    plain = tensor.layout == torch.strided and not tensor.is_nested
    return int(tensor.storage_offset()) if plain else 0


def _packed(model: nn.Module) -> Iterator[ParameterRecord]:
    """What quantised layers hold: it is unpacked to be looked at, so it has no storage here."""
    for path, module in members.named_modules(model):
        owner = path.removesuffix("_packed_params").removesuffix(".")
        for name, tensor in packed_in(module):
            dtype = str(tensor.dtype).removeprefix("torch.")
            full = f"{owner}.{name}" if owner else name
            nbytes = bytes_of(tensor)
            yield ParameterRecord(full, tuple(tensor.shape), dtype, nbytes, -1, trainable=False)
