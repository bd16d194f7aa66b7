"""From ids to vectors: one learned row per token, plus where it stands."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn, zeros_like
from torch.nn.functional import dropout
from torch.nn.functional import embedding as lookup

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.norm import norm
from shapetrace.model.layers.parameters import matrix
from shapetrace.model.layers.positions import added_positions


class LearnedRows(nn.Module):
    """A learned row per id."""

    def __init__(self, count: int, d_model: int) -> None:
        super().__init__()
        self.weight = matrix(count, d_model)

    def forward(self, ids: Int[Tensor, "B n"]) -> Float[Tensor, "B n d_model"]:
        """The row of each id."""
        return lookup(ids, self.weight)


class Embedding(nn.Module):
    """The token's row plus its position's (none where positions are rotary or absent)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.token = LearnedRows(config.vocab_size, config.d_model)
        self.position = added_positions(config)
        self.norm = norm(config) if config.embedding_norm else None
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.dropout = config.dropout

    def forward(
        self,
        token_ids: Int[Tensor, "B n"],
        start: int = 0,
        *,
        position_ids: Int[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """The tokens as vectors.

        Args:
            token_ids: The tokens.
            start: The position of the first.
            position_ids: Of each, where the texts of a batch stand apart; wins over `start`.
        """
        x: Float[Tensor, "B n d_model"] = self.token(token_ids)
        if self.scale != 1.0:
            x = x * self.scale
        if self.position is not None:
            if position_ids is None:
                x = x + self.position(x, start)
            else:
                x = x + self.position.at(x, position_ids)
        if self.norm is not None:
            x = self.norm(x)
        return dropout(x, self.dropout) if self.training and self.dropout else x


class SegmentEmbedding(Embedding):
    """`Embedding` plus a row for the text that a token belongs to (BERT)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.token_type = LearnedRows(config.token_types, config.d_model)

    def forward(
        self,
        token_ids: Int[Tensor, "B n"],
        start: int = 0,
        token_type_ids: Int[Tensor, "B n"] | None = None,
        *,
        position_ids: Int[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """The tokens as vectors; without `token_type_ids`, all belong to the first text."""
        types: Int[Tensor, "B n"] = (
            zeros_like(token_ids) if token_type_ids is None else token_type_ids
        )
        x: Float[Tensor, "B n d_model"] = self.token(token_ids)
        if self.scale != 1.0:
            x = x * self.scale
        x = x + self.token_type(types)
        if self.position is not None:
            if position_ids is None:
                x = x + self.position(x, start)
            else:
                x = x + self.position.at(x, position_ids)
        if self.norm is not None:
            x = self.norm(x)
        return dropout(x, self.dropout) if self.training and self.dropout else x


def embedding(config: ModelConfig) -> Embedding:
    """The embedding that the configuration asks for."""
    return (SegmentEmbedding if config.token_types else Embedding)(config)
