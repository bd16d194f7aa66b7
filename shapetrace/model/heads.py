"""What stands on top of the blocks."""

from jaxtyping import Float
from torch import Tensor, empty, nn
from torch.nn.functional import linear

from shapetrace.model.config import ModelConfig
from shapetrace.model.feedforward import ACTIVATIONS
from shapetrace.model.norm import norm


class MaskedLanguageHead(nn.Module):
    """BERT's: one more layer and normalisation, then a score for each token known."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = norm(config)
        self.activation = ACTIVATIONS[config.activation]
        self.weight: nn.Parameter | Tensor = nn.Parameter(empty(config.vocab_size, config.d_model))
        self.bias = nn.Parameter(empty(config.vocab_size))

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n vocab_size"]:
        """A score for each token known, at each position."""
        x = self.norm(self.activation(self.dense(x)))
        logits: Float[Tensor, "B n vocab_size"] = linear(x, self.weight, self.bias)
        return logits


class Pooler(nn.Module):
    """BERT's summary of a text: its first token through a layer and tanh."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B d_model"]:
        """The summary of each sequence."""
        first: Float[Tensor, "B d_model"] = x[:, 0]
        pooled: Float[Tensor, "B d_model"] = self.dense(first).tanh()
        return pooled
