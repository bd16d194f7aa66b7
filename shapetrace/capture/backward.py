"""The backward pass of one call of any model, after which every gradient is what it was."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.values import members
from shapetrace.capture.values.quietly import quietly
from shapetrace.capture.values.tensors_in import elements
from shapetrace.errors import ShapetraceError


class BackwardPass:
    """A context manager around a call and its recording; `begin` and `run` are called in it.

    They are two, so that nobody holds the output when the pass runs: what is alive then is
    what the pass needs.

    Gradients are switched on in the block. The gradients that a run leaves lie in ``grad``
    until the block ends, so that a recording in it sees them; then those of before are back.

    Attributes:
        note: What the pass began from; empty as long as it has not begun.
    """

    def __init__(self, model: nn.Module, inputs: CallInputs) -> None:
        self._model = model
        self._given = inputs.tensors()
        self._kept: list[tuple[Tensor, Tensor | None]] = []
        self._loss: Tensor | None = None
        self._refusal = ""
        self._grad = torch.enable_grad()
        self.note = ""

    def __enter__(self) -> Self:
        """Switch gradients on.

        Raises:
            ShapetraceError: For an input whose own graph a backward pass would use up.
        """
        for place, tensor in self._given:
            if not quietly(_is_leaf, tensor):
                raise ShapetraceError(
                    f"argument {place} is the result of a computation with gradients, which a "
                    "backward pass would go on into and use up; give its .detach()"
                )
        self._grad.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Put every gradient back.

        Raises:
            ShapetraceError: If there was nothing that a backward pass could begin from.
        """
        self._grad.__exit__(kind, error, where)
        self._loss = None
        quietly(self._put_back)
        if error is None and self._refusal:
            raise ShapetraceError(self._refusal)

    def begin(self, output: Any) -> None:
        """Find the output's ``.loss``, else the sum of what is differentiable in it.

        Args:
            output: What the model returned.
        """
        loss, self.note = _loss(output)
        if loss is None:
            self._refusal = (
                "a backward pass needs an output that requires grad, and "
                f"{type(self._model).__name__} returns none: {self._why(output)}"
            )
            return
        quietly(self._put_aside, loss)
        self._loss = loss

    def run(self) -> None:
        """Go back, if there is anything to go back from."""
        if self._loss is not None:
            torch.autograd.backward(self._loss)

    def _why(self, output: Any) -> str:
        parameters = members.parameters(self._model)
        if not any(tensor.requires_grad for tensor in (*parameters, *(t for _, t in self._given))):
            return "no parameter and no input requires grad"
        if not any(tensor.is_floating_point() for _, tensor in elements(output)):
            return "there is no floating-point tensor in what it returns"
        return "what it returns is detached, or was made with gradients switched off"

    def _put_aside(self, loss: Tensor) -> None:
        """Take the gradient from every leaf that the pass may reach, so that each is made anew.

        Parameters that checkpointing hides from the graph are leaves too.
        """
        given = (tensor for _, tensor in self._given)
        leaves = (*members.parameters(self._model), *given, *_leaves(loss))
        found = {id(tensor): tensor for tensor in leaves}
        self._kept = [(tensor, tensor.grad) for tensor in found.values()]
        for tensor, _ in self._kept:
            tensor.grad = None

    def _put_back(self) -> None:
        for tensor, gradient in self._kept:
            tensor.grad = gradient
        self._kept = []


def _is_leaf(tensor: Tensor) -> bool:
    return tensor.is_leaf


def _loss(output: Any) -> tuple[Tensor | None, str]:
    """What a backward pass begins from, a number, and what it is."""
    own = getattr(output, "loss", None)
    if isinstance(own, Tensor) and own.requires_grad:
        if own.numel() == 1:
            return own, "backward pass from the output's .loss"
        return own.sum(), "backward pass from the sum of the output's .loss"
    tensors = {
        id(tensor): tensor
        for _, tensor in elements(output)
        if tensor.requires_grad and tensor.is_floating_point()
    }
    if not tensors:
        return None, ""
    first, *others = tensors.values()
    loss = first.sum()
    for tensor in others:
        loss = loss + tensor.sum().to(loss.device)
    summed = f"{len(tensors)} outputs" if others else "the output"
    return loss, f"backward pass from the sum of {summed}: this is no loss of the model's own"


def _leaves(loss: Tensor) -> Iterator[Tensor]:
    """The leaves of a graph, whose ``grad`` its backward pass fills in."""
    if loss.grad_fn is None:
        yield loss
        return
    seen, nodes = {loss.grad_fn}, [loss.grad_fn]  # held: nodes are told apart by identity
    while nodes:
        node = nodes.pop()
        variable = getattr(node, "variable", None)  # of autograd's AccumulateGrad alone
        if isinstance(variable, Tensor):
            yield variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
