"""The original Transformer: an encoder reads one text, a decoder writes another."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from shapetrace.model.config import ModelConfig
from shapetrace.model.encoder import Encoder
from shapetrace.model.errors import ModelError
from shapetrace.model.layers.blocks import cross_block
from shapetrace.model.layers.cache import Cache, LayerCache, MemoryCache
from shapetrace.model.layers.heads import LanguageHead
from shapetrace.model.layers.stack import Stack, Transformer
from shapetrace.model.layers.visibility import across, left_side


class CrossDecoder(Stack):
    """The writing half: sees the left side of its own text, and all of `memory`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.blocks.extend(cross_block(config) for _ in range(config.decoder_layers))
        self.explicit = config.attention == "explicit"

    def forward(
        self,
        token_ids: Int[Tensor, "B n"],
        memory: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "B n"] | None = None,
        memory_mask: Bool[Tensor, "B m"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """Each target token in the context of those before it and of the source.

        Args:
            token_ids: The target's tokens.
            memory: The encoder's output.
            mask: True at the target's real tokens; None where there is no padding.
            memory_mask: True at the source's real tokens; None where there is no padding.
        """
        n, window = token_ids.shape[1], self.config.window
        visible: Bool[Tensor, "B 1 n n"] | None = None
        if mask is not None or self.explicit or (window is not None and window < n):
            visible = left_side(token_ids, mask, window)
        memory_visible: Bool[Tensor, "B 1 n m"] | None = (
            None if memory_mask is None else across(memory_mask, n)
        )
        x: Float[Tensor, "B n d_model"] = self.embedding(token_ids)
        rotation: Float[Tensor, "2 n d_k"] | None = None if self.rotary is None else self.rotary(x)
        for layer in self.blocks:
            x = layer(x, memory, visible, memory_visible, rotation)
        if self.final_norm is not None:
            x = self.final_norm(x)
        return x

    def extend(
        self, token_ids: Int[Tensor, "B n"], cache: Cache, memory: Float[Tensor, "B m d_model"]
    ) -> Float[Tensor, "B n d_model"]:
        """Each of `n` new target tokens in the context of those before it and of the source.

        Args:
            token_ids: The tokens that continue the target.
            cache: Keys and values of the tokens before; those of the new ones are added.
            memory: The encoder's output.
        """
        start, n = cache.length, token_ids.shape[1]
        cache.look(n)
        memory_visible: Bool[Tensor, "B 1 n m"] | None = (
            None if cache.memory_mask is None else across(cache.memory_mask, n)
        )
        x: Float[Tensor, "B n d_model"] = self.embedding(token_ids, start)
        rotation: Float[Tensor, "2 n d_k"] | None = (
            None if self.rotary is None else self.rotary(x, start)
        )
        past: LayerCache
        source: MemoryCache
        for layer, past, source in zip(self.blocks, cache.layers, cache.sources, strict=True):
            x = layer(
                x,
                memory,
                memory_visible=memory_visible,
                rotation=rotation,
                cache=past,
                source=source,
            )
        if self.final_norm is not None:
            x = self.final_norm(x)
        return x


class EncoderDecoder(Transformer):
    """Source and target ids to a score for each token that may come next in the target."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = CrossDecoder(config)
        self.head = LanguageHead(config)
        self.tie()

    def tie(self) -> None:
        """Make both embeddings and the head one matrix, where configured."""
        if self.config.tie_embeddings:
            shared = self.encoder.embedding.token.weight
            self.decoder.embedding.token.weight = shared
            self.head.weight = shared

    def forward(
        self,
        token_ids: Int[Tensor, "B m"],
        target_ids: Int[Tensor, "B n"],
        mask: Bool[Tensor, "B m"] | None = None,
        target_mask: Bool[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n vocab_size"]:
        """A score for each token that may follow each position of the target.

        Args:
            token_ids: The source, `m` tokens.
            target_ids: The target so far, `n` tokens.
            mask: True at the source's real tokens; None where there is no padding.
            target_mask: True at the target's real tokens; None where there is no padding.

        Raises:
            ModelError: There are more tokens than learned positions.
        """
        memory: Float[Tensor, "B m d_model"] = self.encoder(token_ids, mask)
        x: Float[Tensor, "B n d_model"] = self.decoder(target_ids, memory, target_mask, mask)
        logits: Float[Tensor, "B n vocab_size"] = self.head(x)
        return logits

    def read(
        self, token_ids: Int[Tensor, "B m"], mask: Bool[Tensor, "B m"] | None, cache: Cache
    ) -> None:
        """Read the source, once; the decoder's layers keep its keys and values in `cache`."""
        memory: Float[Tensor, "B m d_model"] = self.encoder(token_ids, mask)
        cache.read(memory, mask)

    def extend(self, token_ids: Int[Tensor, "B n"], cache: Cache) -> Float[Tensor, "B vocab_size"]:
        """A score for each token that may follow the last of `n` new ones of the target.

        Args:
            token_ids: The tokens that continue the target.
            cache: After `read`; keys and values of the new tokens are added.

        Raises:
            ModelError: The source was not read, or there are more tokens than learned positions.
        """
        memory: Float[Tensor, "B m d_model"] | None = cache.memory
        if memory is None:
            raise ModelError("the source comes first: call `read`")
        x: Float[Tensor, "B n d_model"] = self.decoder.extend(token_ids, cache, memory)
        last: Float[Tensor, "B 1 d_model"] = x[:, -1:]
        logits: Float[Tensor, "B 1 vocab_size"] = self.head(last)
        return logits[:, 0]
