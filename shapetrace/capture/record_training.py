"""A recording that tells gradients and optimizer state from other memory.

An operator that makes a tensor cannot know that it will become a parameter's gradient or an
optimizer's memory of it; after the backward pass and after the update it can be seen.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from shapetrace.capture.recording import Recording
from shapetrace.capture.values import members
from shapetrace.capture.values.tensors_in import elements
from shapetrace.records.trace import StorageKind, Trace


class TrainingRecording(Recording):
    """A recording of forward, backward and update."""

    def mark_gradients(self) -> None:
        """Backward has run: what lies in the parameters' ``grad`` are gradients."""
        gradients = self._gradients
        for name, parameter in self._named():
            if parameter.grad is not None:
                block = self._mark(parameter.grad, "gradient")
                if block is not None:
                    gradients[name] = block

    def mark_state(self, optimizer: torch.optim.Optimizer) -> None:
        """The update has run: what the optimizer keeps of each parameter is its state."""
        for state in optimizer.state.values():
            for _, tensor in elements(dict(state)):
                self._mark(tensor, "state")

    @property
    def _gradients(self) -> dict[str, int]:
        """Blocks of gradients, by the parameter's name."""
        found: dict[str, int] = self.__dict__.setdefault("_gradient_blocks", {})
        return found

    def _named(self) -> list[tuple[str, torch.nn.Parameter]]:
        model = self._model
        return [] if model is None else list(members.named_parameters(model))

    def _mark(self, tensor: torch.Tensor, kind: StorageKind) -> int | None:
        storages = self._recorder.storages
        block = storages.index(tensor, kind)
        if block is not None:
            nbytes, _, device = storages.blocks[block]
            storages.blocks[block] = nbytes, kind, device
        return block

    def _finish(self) -> Trace:
        """The trace, each parameter with the storage of its gradient."""
        trace = super()._finish()
        # Blocks keep their order when they become storages.
        blocks = sorted(set(self._gradients.values()))
        storages = [i for i, storage in enumerate(trace.storages) if storage.kind == "gradient"]
        place = dict(zip(blocks, storages, strict=True))
        parameters = tuple(
            replace(record, gradient=place[self._gradients[record.path]])
            if record.path in self._gradients
            else record
            for record in trace.parameters
        )
        return replace(trace, parameters=parameters)
