"""The encoder: every token sees both sides (BERT)."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from shapetrace.model.config import ModelConfig
from shapetrace.model.errors import ModelError
from shapetrace.model.layers.blocks import block
from shapetrace.model.layers.heads import MaskedLanguageHead, Pooler
from shapetrace.model.layers.stack import Stack
from shapetrace.model.layers.visibility import both_sides


class Encoder(Stack):
    """Ids to contextual vectors."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.blocks.extend(block(config, causal=False) for _ in range(config.layers))
        self.pooler = Pooler(config) if config.pooler else None

    def forward(
        self,
        token_ids: Int[Tensor, "B n"],
        mask: Bool[Tensor, "B n"] | None = None,
        token_type_ids: Int[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """Each token in its context.

        Args:
            token_ids: The tokens.
            mask: True at real tokens, False at padding; None where there is none.
            token_type_ids: The text that each token belongs to, where the model tells them
                apart; None for all to the first.

        Raises:
            ModelError: Token types for a model without, or more tokens than positions.
        """
        visible: Bool[Tensor, "B 1 n n"] | None = None if mask is None else both_sides(mask)
        x: Float[Tensor, "B n d_model"] = self._embedded(token_ids, token_type_ids)
        rotation: Float[Tensor, "2 n d_k"] | None = None if self.rotary is None else self.rotary(x)
        for layer in self.blocks:
            x = layer(x, visible, rotation)
        if self.final_norm is not None:
            x = self.final_norm(x)
        return x

    def _embedded(
        self, token_ids: Int[Tensor, "B n"], token_type_ids: Int[Tensor, "B n"] | None
    ) -> Float[Tensor, "B n d_model"]:
        if token_type_ids is None:
            x: Float[Tensor, "B n d_model"] = self.embedding(token_ids)
            return x
        if not self.config.token_types:
            raise ModelError("token types were given, but the model has none (`token_types` is 0)")
        x = self.embedding(token_ids, 0, token_type_ids)
        return x  # noqa: RET504 - named so that it is annotated

    def pooled(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B d_model"]:
        """A summary of each text, from the encoder's output.

        Raises:
            ModelError: The model has no pooler.
        """
        if self.pooler is None:
            raise ModelError("the model has no pooler (`pooler` is false)")
        pooled: Float[Tensor, "B d_model"] = self.pooler(x)
        return pooled


class MaskedEncoder(Encoder):
    """An encoder that scores, at each position, which token stands or stood there."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.head = MaskedLanguageHead(config)
        self.tie()

    def tie(self) -> None:
        """Make the head's matrix the token embedding, where configured."""
        if self.config.tie_embeddings:
            self.head.weight = self.embedding.token.weight

    def forward(
        self,
        token_ids: Int[Tensor, "B n"],
        mask: Bool[Tensor, "B n"] | None = None,
        token_type_ids: Int[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n vocab_size"]:
        """A score for each token known, at each position; arguments as for `Encoder`."""
        x: Float[Tensor, "B n d_model"] = super().forward(token_ids, mask, token_type_ids)
        logits: Float[Tensor, "B n vocab_size"] = self.head(x)
        return logits
