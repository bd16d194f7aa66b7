"""The block: attention mixes along the sequence, the feed-forward works on each token.

Around each sublayer stand a residual shortcut and a normalisation: before it (GPT-2, Llama)
or after the sum (the original, BERT). A decoder's block that reads an encoder has a third
sublayer between the two.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers.attention import cross_attention, self_attention
from shapetrace.model.layers.cache import LayerCache, MemoryCache
from shapetrace.model.layers.feedforward import feedforward
from shapetrace.model.layers.norm import norm


class Block(nn.Module):
    """The parts of a block that reads its own sequence."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__()
        self.attention_norm = norm(config)
        self.attention = self_attention(config, causal=causal)
        self.feedforward_norm = norm(config)
        self.feedforward = feedforward(config)
        self.dropout = config.dropout


class PreNormBlock(Block):
    """x + sublayer(norm(x)), twice."""

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        visible: Bool[Tensor, "B 1 n n"] | None = None,
        rotation: Float[Tensor, "2 n d_k"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """The sequence after one block; `cache` keeps what came before it."""
        drop = self.dropout if self.training else 0.0
        change: Float[Tensor, "B n d_model"] = self.attention(
            self.attention_norm(x), visible, rotation, cache
        )
        x = x + (dropout(change, drop) if drop else change)
        change = self.feedforward(self.feedforward_norm(x))
        return x + (dropout(change, drop) if drop else change)


class PostNormBlock(Block):
    """norm(x + sublayer(x)), twice."""

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        visible: Bool[Tensor, "B 1 n n"] | None = None,
        rotation: Float[Tensor, "2 n d_k"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """The sequence after one block; `cache` keeps what came before it."""
        drop = self.dropout if self.training else 0.0
        change: Float[Tensor, "B n d_model"] = self.attention(x, visible, rotation, cache)
        x = self.attention_norm(x + (dropout(change, drop) if drop else change))
        change = self.feedforward(x)
        output: Float[Tensor, "B n d_model"] = self.feedforward_norm(
            x + (dropout(change, drop) if drop else change)
        )
        return output


class CrossBlock(Block):
    """The parts of a decoder's block that reads an encoder's output too."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, causal=True)
        self.cross_attention_norm = norm(config)
        self.cross_attention = cross_attention(config)


class PreNormCrossBlock(CrossBlock):
    """x + sublayer(norm(x)), three times."""

    def forward(  # noqa: PLR0917 - tensors and caches of two sequences
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n n"] | None = None,
        memory_visible: Bool[Tensor, "B 1 n m"] | None = None,
        rotation: Float[Tensor, "2 n d_k"] | None = None,
        cache: LayerCache | None = None,
        source: MemoryCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """The target sequence after one block; `memory` is the encoder's output.

        `cache` keeps what came before, and `source` the encoder's keys and values.
        """
        drop = self.dropout if self.training else 0.0
        change: Float[Tensor, "B n d_model"] = self.attention(
            self.attention_norm(x), visible, rotation, cache
        )
        x = x + (dropout(change, drop) if drop else change)
        change = self.cross_attention(self.cross_attention_norm(x), memory, memory_visible, source)
        x = x + (dropout(change, drop) if drop else change)
        change = self.feedforward(self.feedforward_norm(x))
        return x + (dropout(change, drop) if drop else change)


class PostNormCrossBlock(CrossBlock):
    """norm(x + sublayer(x)), three times."""

    def forward(  # noqa: PLR0917 - tensors and caches of two sequences
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n n"] | None = None,
        memory_visible: Bool[Tensor, "B 1 n m"] | None = None,
        rotation: Float[Tensor, "2 n d_k"] | None = None,
        cache: LayerCache | None = None,
        source: MemoryCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """The target sequence after one block; `memory` is the encoder's output.

        `cache` keeps what came before, and `source` the encoder's keys and values.
        """
        drop = self.dropout if self.training else 0.0
        change: Float[Tensor, "B n d_model"] = self.attention(x, visible, rotation, cache)
        x = self.attention_norm(x + (dropout(change, drop) if drop else change))
        change = self.cross_attention(x, memory, memory_visible, source)
        x = self.cross_attention_norm(x + (dropout(change, drop) if drop else change))
        change = self.feedforward(x)
        output: Float[Tensor, "B n d_model"] = self.feedforward_norm(
            x + (dropout(change, drop) if drop else change)
        )
        return output


def block(config: ModelConfig, *, causal: bool) -> Block:
    """The block of a stack that reads its own sequence."""
    return (PreNormBlock if config.norm_position == "pre" else PostNormBlock)(config, causal=causal)


def cross_block(config: ModelConfig) -> CrossBlock:
    """The block of a decoder that reads an encoder."""
    return (PreNormCrossBlock if config.norm_position == "pre" else PostNormCrossBlock)(config)
