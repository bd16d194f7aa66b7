"""Blocks of memory: which tensor lies in which, and when each is allocated and freed.

A storage is known by the address of its C++ object, which a weak reference guards: when
the last tensor on it goes, the reference's callback says so. Nothing here keeps a tensor
alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial

import torch

from shapetrace.capture.values.inner_tensors import wrapped_by
from shapetrace.capture.values.quietly import PLAIN, quietly
from shapetrace.records.trace import StorageKind

MemoryBlock = tuple[int, StorageKind, torch.device]
"""A storage as first seen: bytes, what it holds, where it lies."""


class Storages:
    """Numbers every storage that is met, and tells when one is freed.

    Attributes:
        blocks: What was met, by number.
        live: The storages that exist now, by address: number, and the reference that
            watches over it.
    """

    def __init__(self, on_free: Callable[[int], None]) -> None:
        self.blocks: list[MemoryBlock] = []
        self.live: dict[int, tuple[int, weakref.ref[torch.UntypedStorage]]] = {}
        self._on_free = on_free

    def index(self, tensor: torch.Tensor, kind: StorageKind) -> int | None:
        """The number of a tensor's block, a new one if it was not met before.

        Args:
            tensor: Any tensor, of any shape.
            kind: What a new block is taken to hold.

        Returns:
            The number, of a wrapper's inner tensors that of the largest; None where torch keeps no storage (sparse, functorch, ...).
        """
        try:
            if type(tensor) in PLAIN:
                storage = tensor.untyped_storage()
            else:
                inner = self._inner(tensor, kind)
                if inner:
                    return max(inner, key=lambda block: self.blocks[block][0])
                storage = quietly(torch.Tensor.untyped_storage, tensor)
        except (NotImplementedError, RuntimeError):
            return None
        known = self.live.get(storage._cdata)  # noqa: SLF001 - data_ptr() is 0 on meta
        return self.meet(storage, kind) if known is None else known[0]

    def _inner(self, tensor: torch.Tensor, kind: StorageKind) -> list[int]:
        """The blocks of the tensors that a wrapper is made of: its own storage holds nothing."""
        found = (self.index(inner, kind) for inner in wrapped_by(tensor))
        return [block for block in found if block is not None]

    def meet(self, storage: torch.UntypedStorage, kind: StorageKind) -> int:
        """Number a storage that was not met before, and watch it."""
        address, block = storage._cdata, len(self.blocks)  # noqa: SLF001
        watch = weakref.ref(storage, partial(self._freed, address, block))
        self.live[address] = block, watch
        self.blocks.append((storage.nbytes(), kind, storage.device))
        return block

    def _freed(self, address: int, block: int, watch: weakref.ref[torch.UntypedStorage]) -> None:
        known = self.live.get(address)
        if known is not None and known[1] is watch:
            del self.live[address]
            self._on_free(block)

    def close(self) -> None:
        """Stop watching."""
        self.live.clear()
