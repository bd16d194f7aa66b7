"""Blocks of memory: which tensor lies in which, and when each is allocated and freed.

A storage is known by the address of its C++ object, which a weak reference guards: when
the last tensor on it goes, the reference's callback says so. Nothing here keeps a tensor
alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import torch

from shapetrace.trace.records import StorageKind


@dataclass(frozen=True, slots=True)
class Block:
    """A storage as first seen."""

    nbytes: int
    kind: StorageKind
    device: str


class Watch(weakref.ref[torch.UntypedStorage]):
    """A weak reference that knows which block it watches."""

    __slots__ = ("address", "block")
    address: int
    block: int


class Storages:
    """Numbers every storage that is met, and tells when one is freed.

    Attributes:
        blocks: What was met, by number.
        live: The storages that exist now, by address.
    """

    def __init__(self, on_free: Callable[[int], None]) -> None:
        self.blocks: list[Block] = []
        self.live: dict[int, Watch] = {}
        self._on_free = on_free

    def index(self, tensor: torch.Tensor, kind: StorageKind) -> int | None:
        """The number of a tensor's block, a new one if it was not met before.

        Args:
            tensor: Any tensor, of any shape.
            kind: What a new block is taken to hold.

        Returns:
            The number, or None where torch keeps no storage (sparse, functorch, ...).
        """
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None
        watch = self.live.get(storage._cdata)  # noqa: SLF001 - data_ptr() is 0 on meta
        return self.meet(storage, kind) if watch is None else watch.block

    def meet(self, storage: torch.UntypedStorage, kind: StorageKind) -> int:
        """Number a storage that was not met before, and watch it."""
        watch = Watch(storage, self._freed)
        watch.address = storage._cdata  # noqa: SLF001
        watch.block = len(self.blocks)
        self.live[watch.address] = watch
        self.blocks.append(Block(storage.nbytes(), kind, str(storage.device)))
        return watch.block

    def _freed(self, watch: weakref.ref[torch.UntypedStorage]) -> None:
        assert isinstance(watch, Watch)  # noqa: S101 - the type of what `meet` created
        if self.live.get(watch.address) is watch:
            del self.live[watch.address]
            self._on_free(watch.block)

    def close(self) -> None:
        """Stop watching."""
        self.live.clear()
