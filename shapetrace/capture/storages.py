"""Blocks of memory: which tensor lies in which, and when each is allocated and freed.

A storage is known by the address of its C++ object, which a weak reference guards: when
the last tensor on it goes, the reference's callback writes the release into the events.
Nothing here keeps a tensor alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import torch

from shapetrace.trace.records import StorageKind


@dataclass(slots=True)
class Block:
    """A storage as first seen."""

    nbytes: int
    kind: StorageKind
    device: str
    born: int


class _Watch(weakref.ref[torch.UntypedStorage]):
    """A weak reference that knows which block it watches."""

    __slots__ = ("address", "block")
    address: int
    block: int


class Storages:
    """Numbers every storage that is met, and tells when one is freed.

    Attributes:
        blocks: What was met, by number.
    """

    def __init__(self, on_free: Callable[[int], None]) -> None:
        self.blocks: list[Block] = []
        self._live: dict[int, _Watch] = {}
        self._on_free = on_free

    def index(self, tensor: torch.Tensor, kind: StorageKind, born: int) -> int | None:
        """The number of a tensor's storage, a new one if it was not met before.

        Args:
            tensor: Any tensor, of any shape.
            kind: What a new storage is taken to hold.
            born: Clock of a new storage's allocation.

        Returns:
            The number, or None where torch keeps no storage (sparse, functorch, ...).
        """
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None
        address = storage._cdata  # noqa: SLF001 - data_ptr() is 0 on meta and fake tensors
        watch = self._live.get(address)
        return self._meet(storage, address, kind, born) if watch is None else watch.block

    def _meet(
        self, storage: torch.UntypedStorage, address: int, kind: StorageKind, born: int
    ) -> int:
        watch = _Watch(storage, self._freed)
        watch.address, watch.block = address, len(self.blocks)
        self._live[address] = watch
        self.blocks.append(Block(storage.nbytes(), kind, str(storage.device), born))
        return watch.block

    def _freed(self, watch: weakref.ref[torch.UntypedStorage]) -> None:
        assert isinstance(watch, _Watch)  # noqa: S101 - the type of what we created
        if self._live.get(watch.address) is watch:
            del self._live[watch.address]
            self._on_free(watch.block)

    def close(self) -> None:
        """Stop watching."""
        self._live.clear()
