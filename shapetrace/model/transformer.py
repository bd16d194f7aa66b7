"""How a Transformer is built from a configuration.

Dropout is active after `build`, as in any new module: call `eval()` to use a model.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from shapetrace.model.config import ModelConfig
from shapetrace.model.decoder import Decoder
from shapetrace.model.encoder import Encoder, MaskedEncoder
from shapetrace.model.encoder_decoder import EncoderDecoder
from shapetrace.model.layers.norm import LayerNorm, RMSNorm
from shapetrace.model.layers.stack import Transformer

__all__ = ["Decoder", "Encoder", "EncoderDecoder", "MaskedEncoder", "Transformer", "build", "frame"]


def build(
    config: ModelConfig,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Transformer:
    """A new model with random weights.

    Args:
        config: What to build.
        device: Where; torch's default device when None. On ``meta`` it has no weights.
        dtype: Of the parameters; torch's default when None.
    """
    place = torch.device(device) if device is not None else torch.get_default_device()
    with place, _default_dtype(dtype):
        model = _class_of(config)(config)
    if place.type != "meta":
        initialize(model)
    return model


def frame(config: ModelConfig, dtype: torch.dtype | None = None) -> Transformer:
    """The model without weights, on the meta device: instant at any size."""
    return build(config, "meta", dtype)


@contextmanager
def _default_dtype(dtype: torch.dtype | None) -> Iterator[None]:
    """Parameters are made in this dtype and never converted: no second copy of them."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(before if dtype is None else dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _class_of(config: ModelConfig) -> type[Transformer]:
    if config.kind == "encoder":
        return MaskedEncoder if config.head == "mlm" else Encoder
    return Decoder if config.kind == "decoder" else EncoderDecoder


@torch.no_grad()
def initialize(model: Transformer) -> None:
    """Random weights: normal with `init_std`, biases zero, normalisations neutral."""
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=model.config.init_std)
            else:
                nn.init.zeros_(parameter)
        if isinstance(module, LayerNorm | RMSNorm):
            nn.init.ones_(module.weight)
