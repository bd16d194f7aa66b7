"""One pass forward and one backward, traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from shapetrace.api.transformer.building import input_sizes, model_arguments
from shapetrace.capture.recording import record
from shapetrace.errors import ShapetraceError
from shapetrace.model.training import loss_of
from shapetrace.model.training.data import IGNORED

if TYPE_CHECKING:
    from shapetrace.api.transformer.inputs import Ids, Inputs, RandomIds
    from shapetrace.api.transformer.requests import PassRequest
    from shapetrace.model.transformer import Transformer
    from shapetrace.records.trace import Trace


def traced_backward(request: PassRequest, model: Transformer, inputs: Inputs) -> Trace:
    """The trace of a pass with its loss and the gradient of every parameter.

    The model is in evaluation mode: no dropout. A decoder predicts the token that follows, an
    encoder the tokens themselves.

    Raises:
        ShapetraceError: If the model has no head to predict with.
    """
    if request.config.head == "none":
        raise ShapetraceError(
            "--backward needs something to predict, and the model has no head; use --set head=mlm"
        )
    arguments = model_arguments(request.device, inputs)
    ids = inputs.source if inputs.target is None else inputs.target
    labels, predicted = _labels(
        ids, shifted=request.config.kind != "encoder", device=request.device
    )
    recording = record(
        model,
        check=request.check,
        target=request.name,
        config=request.config.to_dict(),
        sizes=input_sizes(request.config, inputs),
    )
    try:
        with recording:
            torch.autograd.backward(loss_of(model(**arguments), labels) / predicted)
    except torch.OutOfMemoryError as error:
        raise ShapetraceError(
            f"{request.name} ran out of memory on {request.device}; use a smaller --batch or --seq"
        ) from error
    return recording.trace


def _labels(ids: Ids | RandomIds, *, shifted: bool, device: str) -> tuple[Tensor, int]:
    """What is to be predicted at each position, and how many there are."""
    mask = ids.mask or [[True] * len(row) for row in ids.ids]
    rows = [
        [token if real else IGNORED for token, real in zip(row, reals, strict=True)]
        for row, reals in zip(ids.ids, mask, strict=True)
    ]
    if shifted:
        rows = [[*row[1:], IGNORED] for row in rows]
    predicted = sum(token != IGNORED for row in rows for token in row)
    return torch.tensor(rows, device=device), max(1, predicted)
