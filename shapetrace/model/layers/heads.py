"""What stands on top of the blocks."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.feedforward import ACTIVATIONS
from shapetrace.model.layers.norm import norm
from shapetrace.model.layers.parameters import matrix, vector


class LanguageHead(nn.Module):
    """A score for each token that may come next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = matrix(config.vocab_size, config.d_model)

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n vocab_size"]:
        """The scores at each position."""
        logits: Float[Tensor, "B n vocab_size"] = linear(x, self.weight)
        return logits


class MaskedLanguageHead(nn.Module):
    """BERT's: one more layer and normalisation, then a score for each token known."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.w_dense = matrix(config.d_model, config.d_model)
        self.b_dense = vector(config.d_model)
        self.norm = norm(config)
        self.activation = ACTIVATIONS[config.activation]
        self.weight = matrix(config.vocab_size, config.d_model)
        self.bias = vector(config.vocab_size)

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n vocab_size"]:
        """A score for each token known, at each position."""
        x = self.norm(self.activation(linear(x, self.w_dense, self.b_dense)))
        logits: Float[Tensor, "B n vocab_size"] = linear(x, self.weight, self.bias)
        return logits


class Pooler(nn.Module):
    """BERT's summary of a text: its first token through a layer and tanh."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.w_dense = matrix(config.d_model, config.d_model)
        self.b_dense = vector(config.d_model)

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B d_model"]:
        """The summary of each sequence."""
        first: Float[Tensor, "B d_model"] = x[:, 0]
        pooled: Float[Tensor, "B d_model"] = linear(first, self.w_dense, self.b_dense).tanh()
        return pooled
