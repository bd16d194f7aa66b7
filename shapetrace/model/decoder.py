"""The decoder: every token sees the left side, and the next one is guessed (GPT-2, Llama)."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.blocks import block
from shapetrace.model.layers.cache import Cache, LayerCache
from shapetrace.model.layers.heads import LanguageHead
from shapetrace.model.layers.stack import Stack
from shapetrace.model.layers.visibility import left_side


class Decoder(Stack):
    """Ids to a score for each token that may come next, at each position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.blocks.extend(block(config, causal=True) for _ in range(config.layers))
        self.head = LanguageHead(config)
        self.explicit = config.attention == "explicit"
        self.tie()

    def tie(self) -> None:
        """Make the head's matrix the token embedding, where configured."""
        if self.config.tie_embeddings:
            self.head.weight = self.embedding.token.weight

    def forward(
        self, token_ids: Int[Tensor, "B n"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B n vocab_size"]:
        """A score for each token that may follow each position.

        Args:
            token_ids: The tokens.
            mask: True at real tokens, False at padding; None where there is none.

        Raises:
            ModelError: There are more tokens than learned positions.
        """
        n, window = token_ids.shape[1], self.config.window
        visible: Bool[Tensor, "B 1 n n"] | None = None
        if mask is not None or self.explicit or (window is not None and window < n):
            visible = left_side(token_ids, mask, window)
        x: Float[Tensor, "B n d_model"] = self.embedding(token_ids)
        rotation: Float[Tensor, "2 n d_k"] | None = None if self.rotary is None else self.rotary(x)
        for layer in self.blocks:
            x = layer(x, visible, rotation)
        if self.final_norm is not None:
            x = self.final_norm(x)
        logits: Float[Tensor, "B n vocab_size"] = self.head(x)
        return logits

    def extend(self, token_ids: Int[Tensor, "B n"], cache: Cache) -> Float[Tensor, "B vocab_size"]:
        """A score for each token that may follow the last of `n` new ones.

        Args:
            token_ids: The tokens that continue each text.
            cache: Keys and values of the tokens before; those of the new ones are added.

        Raises:
            ModelError: There are more tokens than learned positions.
        """
        start, n = cache.length, token_ids.shape[1]
        cache.look(n)
        x: Float[Tensor, "B n d_model"] = self.embedding(
            token_ids, start, position_ids=cache.position_ids(n)
        )
        rotation: Float[Tensor, "2 n d_k"] | None = (
            None if self.rotary is None else self.rotary(x, start)
        )
        past: LayerCache
        for layer, past in zip(self.blocks, cache.layers, strict=True):
            x = layer(x, None, rotation, past)
        last: Float[Tensor, "B 1 d_model"] = x if n == 1 else x[:, -1:]
        if self.final_norm is not None:
            last = self.final_norm(last)
        logits: Float[Tensor, "B 1 vocab_size"] = self.head(last)
        return logits[:, 0]
