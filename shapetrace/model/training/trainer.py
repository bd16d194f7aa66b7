"""A model with its optimizer: one step, one evaluation."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from shapetrace.model.errors import ModelError
from shapetrace.model.layers.stack import Transformer
from shapetrace.model.settings import SEEDS
from shapetrace.model.training.data import Data, TrainingBatch
from shapetrace.model.training.objective import logits_of, loss_of, mean_loss
from shapetrace.model.training.settings import TrainingSettings, learning_rate

_EVALUATION = 1 << 40
"""Added to the number of a batch that is evaluated, which no step reaches."""


class Trainer:
    """A model in training.

    Attributes:
        model: The model.
        data: What it learns from.
        settings: How.
        optimizer: AdamW; Loshchilov and Hutter 2019.
        step_number: Steps that were taken.
    """

    def __init__(self, model: Transformer, data: Data, settings: TrainingSettings) -> None:
        limit = model.config.max_positions
        if settings.seq > limit:
            raise ModelError(
                f"sequences of {settings.seq} tokens, but the model has {limit} positions "
                "(`max_positions`)"
            )
        if model.config.head == "none":
            raise ModelError("the model has no head to train (`head` is 'none'); use head=mlm")
        self.model = model
        self.data = data
        self.settings = settings
        self.optimizer = optimizer_of(model, settings)
        self.step_number = 0

    @property
    def without_values(self) -> bool:
        """Whether the model is on ``meta``: a step has its shapes and costs, and no loss."""
        return next(self.model.parameters()).is_meta

    def batches(self) -> list[TrainingBatch]:
        """The next step's batches, one per accumulated pass."""
        settings = self.settings
        first = self.step_number * settings.accumulate
        device = next(self.model.parameters()).device
        return [
            self.data.batch(settings.batch, settings.seq, self._chance(number)).to(device)
            for number in range(first, first + settings.accumulate)
        ]

    def step(self) -> float:
        """Take one step; the loss per token before it."""
        self.model.train()
        batches = self.batches()
        torch.manual_seed(self._seed(self.step_number))  # dropout goes on after a resume
        predicted = sum(batch.predicted for batch in batches)
        total = sum(self.passed(batch, predicted) for batch in batches)
        if not math.isfinite(total) and not self.without_values:
            raise ModelError(
                f"the loss of step {self.step_number + 1} is {total}: the training diverged; "
                "start again with a lower learning rate, or a smaller `clip`"
            )
        self.update()
        return total

    def passed(self, batch: TrainingBatch, predicted: int) -> float:
        """Forward and backward of one batch; its part of the loss."""
        with self._precision(batch.token_ids.device.type):
            loss: Float[Tensor, ""] = loss_of(logits_of(self.model, batch), batch.labels)
        loss = loss / predicted
        torch.autograd.backward(loss)
        return math.nan if loss.is_meta else float(loss.detach())

    def update(self) -> None:
        """Change the parameters by their gradients."""
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, self.step_number)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step_number += 1

    @torch.no_grad()
    def evaluate(self, batches: int = 4) -> float:
        """The loss per token on held-out text; the same batches each time."""
        self.model.eval()
        device = next(self.model.parameters()).device
        settings, losses = self.settings, []
        for number in range(batches):
            chance = self._chance(_EVALUATION + number)
            batch = self.data.batch(settings.batch, settings.seq, chance, held_out=True).to(device)
            losses.append(float(mean_loss(self.model, batch)))
        self.model.train()
        return sum(losses) / len(losses)

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs beside the model's own weights."""
        return {"step": self.step_number, "optimizer": self.optimizer.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where another run stopped.

        Raises:
            ModelError: The state is not one of this model's training.
        """
        try:
            self.optimizer.load_state_dict(state["optimizer"])
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ModelError(
                "the saved state of the optimizer is damaged, or of another model"
            ) from error
        self.step_number = int(state["step"])

    def _chance(self, number: int) -> Generator:
        return Generator().manual_seed(self._seed(number))

    def _seed(self, number: int) -> int:
        """The seed's bits turned around the word, so that a small one leaves room for the number."""
        seed = self.settings.seed
        return ((seed << 42 | seed >> 22) ^ number) % SEEDS

    @contextmanager
    def _precision(self, device: str) -> Iterator[None]:
        if not self.settings.bf16:
            yield
            return
        if device == "meta":
            raise ModelError("torch mixes no precisions on meta; leave out `bf16` there")
        with torch.autocast(device, torch.bfloat16):
            yield


def optimizer_of(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW over all parameters; matrices decay, vectors (biases, normalisation) do not."""
    parameters = list(model.parameters())
    groups = [
        {
            "params": [p for p in parameters if p.dim() > 1],
            "weight_decay": settings.weight_decay,
        },
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    betas = (settings.beta1, settings.beta2)
    fused = not any(parameter.is_meta for parameter in parameters)  # there is no kernel for meta
    return torch.optim.AdamW(groups, lr=settings.lr, betas=betas, fused=fused)
