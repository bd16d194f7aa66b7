"""Normalisation over `d_model`: each token by itself, to unit size."""

from jaxtyping import Float
from torch import Tensor, layer_norm, nn, rms_norm

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.parameters import bias, vector


class LayerNorm(nn.Module):
    """(x - mean) / standard deviation, scaled and shifted; Ba et al. 2016."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = vector(config.d_model)
        self.bias = bias(config.d_model, wanted=config.biases != "none")
        self.shape = (config.d_model,)
        self.eps = config.norm_eps

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Each token normalised."""
        return layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """x / root mean square, scaled; Zhang and Sennrich 2019."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = vector(config.d_model)
        self.shape = (config.d_model,)
        self.eps = config.norm_eps

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Each token normalised."""
        return rms_norm(x, self.shape, self.weight, self.eps)


def norm(config: ModelConfig) -> LayerNorm | RMSNorm:
    """The normalisation that the configuration asks for."""
    return RMSNorm(config) if config.norm == "rmsnorm" else LayerNorm(config)
