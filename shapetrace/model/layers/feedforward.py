"""The feed-forward: each token by itself, to `d_ff` and back."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import dropout, gelu, linear, relu, silu

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.parameters import bias, matrix

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu-tanh": partial(gelu, approximate="tanh"),
    "silu": silu,
}


class FeedForward(nn.Module):
    """activation(x W_up) W_down, Vaswani et al. 2017, equation 2."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        biased = config.biases == "all"
        self.w_up = matrix(config.d_ff, config.d_model)
        self.b_up = bias(config.d_ff, wanted=biased)
        self.w_down = matrix(config.d_model, config.d_ff)
        self.b_down = bias(config.d_model, wanted=biased)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Each token through the two layers."""
        ffn_hidden: Float[Tensor, "B n d_ff"] = self.activation(linear(x, self.w_up, self.b_up))
        if self.training and self.dropout:
            ffn_hidden = dropout(ffn_hidden, self.dropout)
        return linear(ffn_hidden, self.w_down, self.b_down)


class GatedFeedForward(nn.Module):
    """(activation(x W_gate) * x W_up) W_down: SwiGLU, GeGLU; Shazeer 2020, equation 6."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        biased = config.biases == "all"
        self.w_gate = matrix(config.d_ff, config.d_model)
        self.b_gate = bias(config.d_ff, wanted=biased)
        self.w_up = matrix(config.d_ff, config.d_model)
        self.b_up = bias(config.d_ff, wanted=biased)
        self.w_down = matrix(config.d_model, config.d_ff)
        self.b_down = bias(config.d_model, wanted=biased)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Each token through the gate and the two layers."""
        gate: Float[Tensor, "B n d_ff"] = self.activation(linear(x, self.w_gate, self.b_gate))
        ffn_hidden: Float[Tensor, "B n d_ff"] = gate * linear(x, self.w_up, self.b_up)
        if self.training and self.dropout:
            ffn_hidden = dropout(ffn_hidden, self.dropout)
        return linear(ffn_hidden, self.w_down, self.b_down)


def feedforward(config: ModelConfig) -> nn.Module:
    """The feed-forward that the configuration asks for."""
    return (GatedFeedForward if config.gated else FeedForward)(config)
