"""The key/value cache: keys and values never change once made, so they are made once.

`room` positions have memory; the first `length` of them are filled. Memory is taken once for
as many positions as will be needed, or doubled where more come than were foreseen, so that a
step never copies what is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, arange, cat

from shapetrace.model.config import ModelConfig


@dataclass(eq=False)
class LayerCache:
    """What one layer's self-attention keeps.

    Attributes:
        k: Keys of each text, with room for more.
        v: Values of each text, with room for more.
        length: Positions that are filled.
        visible: Which of the positions so far each new one may look at; None for all.
        w_qkv: W_Q, W_K and W_V on top of each other, where one product is faster than three.
        b_qkv: Their biases.
    """

    k: Float[Tensor, "B h_kv room d_k"]
    v: Float[Tensor, "B h_kv room d_k"]
    length: int = 0
    visible: Bool[Tensor, "B 1 n n_seen"] | None = None
    w_qkv: Float[Tensor, "d_qkv d_model"] | None = None
    b_qkv: Float[Tensor, " d_qkv"] | None = None

    def append(self, k: Float[Tensor, "B h_kv n d_k"], v: Float[Tensor, "B h_kv n d_k"]) -> None:
        """Keep the keys and values of `n` more positions."""
        start, n = self.length, k.shape[2]
        self.length = start + n
        while self.length > self.k.shape[2]:
            self.grow()
        self.k.narrow(2, start, n).copy_(k)
        self.v.narrow(2, start, n).copy_(v)

    def grow(self) -> None:
        """Take memory for twice as many positions."""
        self.k = doubled(self.k)
        self.v = doubled(self.v)

    def join(
        self, w_qkv: Float[Tensor, "d_qkv d_model"], b_qkv: Float[Tensor, " d_qkv"] | None
    ) -> None:
        """Hold the three projections as one."""
        self.w_qkv = w_qkv
        self.b_qkv = b_qkv

    def keys(self) -> Float[Tensor, "B h_kv m d_k"]:
        """The keys of all positions so far; a view."""
        return self.k.narrow(2, 0, self.length)

    def values(self) -> Float[Tensor, "B h_kv m d_k"]:
        """The values of all positions so far; a view."""
        return self.v.narrow(2, 0, self.length)


@dataclass(eq=False)
class MemoryCache:
    """What one layer's cross-attention keeps: the source's keys and values, made once.

    Attributes:
        k: Keys of the encoder's output; None before they are made.
        v: Values of the encoder's output; None before they are made.
    """

    k: Float[Tensor, "B h_kv m d_k"] | None = None
    v: Float[Tensor, "B h_kv m d_k"] | None = None

    def keep(self, k: Float[Tensor, "B h_kv m d_k"], v: Float[Tensor, "B h_kv m d_k"]) -> None:
        """Keep the source's keys and values."""
        self.k = k
        self.v = v


class Cache:
    """All that a generation keeps from step to step.

    Attributes:
        layers: For each of the decoder's layers, its own keys and values.
        sources: For each of the decoder's layers, the source's; empty without an encoder.
        memory: The encoder's output; None without an encoder.
        memory_mask: True at the source's real tokens; None where there is no padding.
        padding: How many positions at the left of each text are padding; None for none.
    """

    def __init__(
        self,
        config: ModelConfig,
        B: int,
        room: int,
        like: Tensor,
        padding: Sequence[int] | None = None,
    ) -> None:
        """Take the memory.

        Args:
            config: The model's.
            B: Texts.
            room: Positions to have memory for.
            like: A tensor of the model's dtype and device.
            padding: How many positions at the left of each text are padding.
        """
        shape = (B, config.h_kv, room, config.d_k)
        count = config.decoder_layers if config.kind == "encoder-decoder" else config.layers
        self.layers = [
            LayerCache(like.new_empty(shape), like.new_empty(shape)) for _ in range(count)
        ]
        self._position_bytes = 2 * count * B * config.h_kv * config.d_k * like.element_size()
        self.sources: list[MemoryCache] = []
        self.memory: Float[Tensor, "B m d_model"] | None = None
        self.memory_mask: Bool[Tensor, "B m"] | None = None
        self.padding: Int[Tensor, " B"] | None = (
            torch.tensor(padding, device=like.device) if padding and any(padding) else None
        )
        self.window = config.window
        self.explicit = config.attention == "explicit"

    @property
    def length(self) -> int:
        """Positions that are filled."""
        return self.layers[0].length

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values kept: 2 * layers * B * h_kv * m * d_k * bytes of one."""
        kept = (tensor for source in self.sources for tensor in (source.k, source.v))
        own = self._position_bytes * self.length
        return own + sum(tensor.nbytes for tensor in kept if tensor is not None)

    def read(self, memory: Float[Tensor, "B m d_model"], mask: Bool[Tensor, "B m"] | None) -> None:
        """Keep the encoder's output; its keys and values are made in the next step."""
        self.memory = memory
        self.memory_mask = mask
        self.sources = [MemoryCache() for _ in self.layers]

    def position_ids(self, n: int) -> Int[Tensor, "B n"] | None:
        """Where each of the next `n` tokens stands in its own text; None where all agree."""
        if self.padding is None:
            return None
        column: Int[Tensor, " n"] = arange(self.length, self.length + n, device=self.padding.device)
        return (column - self.padding[:, None]).clamp(min=0)

    def look(self, n: int) -> None:
        """Work out, for all layers, which positions the next `n` may look at."""
        visible: Bool[Tensor, "B 1 n m"] | None = self._visible(n)
        for layer in self.layers:
            layer.visible = visible

    def _visible(self, n: int) -> Bool[Tensor, "B 1 n m"] | None:
        m, window = self.length + n, self.window
        blinkered = window is not None and window < m
        if n == 1 and self.padding is None and not blinkered:
            return None
        first: Float[Tensor, "B h_kv room d_k"] = self.layers[0].k
        key: Int[Tensor, " m"] = arange(m, device=first.device)
        query: Int[Tensor, " n"] = key[m - n :]
        left: Bool[Tensor, "n m"] = key <= query[:, None]
        if window is not None and blinkered:
            left = left & (key > query[:, None] - window)
        if self.padding is None:
            return left.expand(first.shape[0], 1, n, m)
        return left & (key >= self.padding[:, None, None, None])


def doubled(kept: Float[Tensor, "B h_kv room d_k"]) -> Float[Tensor, "B h_kv 2*room d_k"]:
    """The same with room for twice as many positions."""
    return cat((kept, kept.new_empty(kept.shape)), dim=2)
