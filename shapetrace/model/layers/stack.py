"""What every kind of Transformer has."""

from torch import nn

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.embedding import embedding
from shapetrace.model.layers.norm import norm
from shapetrace.model.layers.positions import rotary_positions


class Transformer(nn.Module):
    """A model with its configuration.

    Attributes:
        config: What it was built from.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    def tie(self) -> None:
        """Make shared parameters one again, after something replaced them."""


class Stack(Transformer):
    """Embedding, blocks and final normalisation; subclasses fill `blocks`.

    A pre-norm stack normalises its output, since no block did; a post-norm stack has none.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.embedding = embedding(config)
        self.rotary = rotary_positions(config)
        self.blocks = nn.ModuleList()
        self.final_norm = norm(config) if config.norm_position == "pre" else None
