"""Normalisation over `d_model`, by configuration."""

from torch import nn

from shapetrace.model.config import ModelConfig


def norm(config: ModelConfig) -> nn.LayerNorm | nn.RMSNorm:
    """The normalisation that the configuration asks for; both keep the shape."""
    if config.norm == "rmsnorm":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.biases != "none")
