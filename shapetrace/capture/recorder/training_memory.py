"""Tells gradients and optimizer state from other memory, as a run shows them.

An operator that makes a tensor cannot know that it will become a parameter's gradient or an
optimizer's memory of it. What autograd has put into a tensor's ``grad`` is a gradient, and
what an optimizer keeps after its step is its state.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

from shapetrace.capture.recorder.storages import Storages
from shapetrace.capture.values.quietly import quietly
from shapetrace.capture.values.tensors_in import elements
from shapetrace.records.trace import StorageKind

ACCUMULATES: Any = vars(torch._C._functions)["AccumulateGrad"]  # noqa: SLF001 - has no other name
"""The node of autograd's graph that fills in a leaf's ``grad``."""


class TrainingMemory:
    """What blocks of memory turned out to be.

    Attributes:
        gradients: Blocks of gradients, by the identity of the tensor that they are of.
        marked: All blocks of gradients and of optimizer state.
        pending: Tensors whose gradient autograd is about to put in place.
    """

    def __init__(self, storages: Storages) -> None:
        self.gradients: dict[int, int] = {}
        self.marked: set[int] = set()
        self.pending: list[torch.Tensor] = []
        self._storages = storages
        self._thread = 0
        self._updates: RemovableHandle | None = None

    def watch(self) -> None:
        """Hear of the updates of every optimizer in this thread, until `stop`."""
        self._thread = get_ident()
        self._updates = register_optimizer_step_post_hook(self._updated)

    def stop(self) -> None:
        """The run has ended."""
        if self._updates is not None:
            self._updates.remove()
            self._updates = None
        quietly(self.settle)

    def settle(self) -> None:
        """Another operator runs, or none is left: what was pending is in place."""
        for tensor in self.pending:
            block = None if tensor.grad is None else self._mark(tensor.grad, "gradient")
            if block is not None:
                self.gradients[id(tensor)] = block
        self.pending.clear()

    def _updated(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if self._thread == get_ident():
            quietly(self._see_state, optimizer)

    def _see_state(self, optimizer: torch.optim.Optimizer) -> None:
        """The update has run: what the optimizer keeps of each parameter is its state."""
        for state in optimizer.state.values():
            for _, tensor in elements(dict[Any, Any](state)):
                self._mark(tensor, "state")

    def _mark(self, tensor: torch.Tensor, kind: StorageKind) -> int | None:
        block = self._storages.index(tensor, kind)
        if block is not None:
            nbytes, known, device = self._storages.blocks[block]
            if known not in ("parameter", "buffer"):
                self._storages.blocks[block] = nbytes, kind, device
                self.marked.add(block)
        return block
