"""How a Transformer is built from a configuration.

Dropout is active after `build`, as in any new module: call `eval()` to use a model.
"""

import torch
from torch import nn

from shapetrace.model.config import ModelConfig
from shapetrace.model.decoder import Decoder
from shapetrace.model.encoder import Encoder, MaskedEncoder
from shapetrace.model.encoder_decoder import EncoderDecoder
from shapetrace.model.norm import LayerNorm, RMSNorm
from shapetrace.model.stack import Transformer

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
    model = frame(config, dtype)
    place = torch.device(device) if device is not None else torch.get_default_device()
    if place.type != "meta":
        model.to_empty(device=place)
        model.tie()
        initialize(model)
    return model


def frame(config: ModelConfig, dtype: torch.dtype | None = None) -> Transformer:
    """The model without weights, on the meta device: instant at any size."""
    with torch.device("meta"):
        model = _class_of(config)(config)
    return model if dtype is None else model.to(dtype)


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
