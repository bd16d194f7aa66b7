"""The feed-forward: each token by itself, to `d_ff` and back."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import dropout, gelu, relu, silu

from shapetrace.model.config import ModelConfig

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
        bias = config.biases == "all"
        self.w_up = nn.Linear(config.d_model, config.d_ff, bias=bias)
        self.w_down = nn.Linear(config.d_ff, config.d_model, bias=bias)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Each token through the two layers."""
        ffn_hidden: Float[Tensor, "B n d_ff"] = self.activation(self.w_up(x))
        if self.training and self.dropout:
            ffn_hidden = dropout(ffn_hidden, self.dropout)
        output: Float[Tensor, "B n d_model"] = self.w_down(ffn_hidden)
        return output


class GatedFeedForward(nn.Module):
    """(activation(x W_gate) * x W_up) W_down: SwiGLU, GeGLU; Shazeer 2020, equation 6."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        bias = config.biases == "all"
        self.w_gate = nn.Linear(config.d_model, config.d_ff, bias=bias)
        self.w_up = nn.Linear(config.d_model, config.d_ff, bias=bias)
        self.w_down = nn.Linear(config.d_ff, config.d_model, bias=bias)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Each token through the gate and the two layers."""
        gate: Float[Tensor, "B n d_ff"] = self.activation(self.w_gate(x))
        ffn_hidden: Float[Tensor, "B n d_ff"] = gate * self.w_up(x)
        if self.training and self.dropout:
            ffn_hidden = dropout(ffn_hidden, self.dropout)
        output: Float[Tensor, "B n d_model"] = self.w_down(ffn_hidden)
        return output


def feedforward(config: ModelConfig) -> nn.Module:
    """The feed-forward that the configuration asks for."""
    return (GatedFeedForward if config.gated else FeedForward)(config)
