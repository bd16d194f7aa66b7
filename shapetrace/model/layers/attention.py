"""Attention as a layer: project to heads, look, put the heads together again.

Two choices of structure, so four layers: who is looked at (the own sequence, or the
encoder's), and whether every query head has its own keys and values or shares them.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, cat, nn
from torch.nn.functional import linear

from shapetrace.model.config import ModelConfig
from shapetrace.model.layers import explicit, fused
from shapetrace.model.layers.cache import LayerCache, MemoryCache
from shapetrace.model.layers.parameters import bias, matrix

JOINED_BELOW = 1 << 20
"""Numbers in W_Q, W_K and W_V together, above which a cache does not join them."""

Attend = Callable[..., Float[Tensor, "B h n d_k"]]


class HeadMixer(nn.Module):
    """Concatenates the heads and mixes them: W_O."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.wo = matrix(config.d_model, config.h * config.d_k)
        self.bo = bias(config.d_model, wanted=config.biases == "all")

    def forward(self, head_output: Float[Tensor, "B h n d_k"]) -> Float[Tensor, "B n d_model"]:
        """The heads side by side, times W_O."""
        B, h, n, d_k = head_output.shape
        concat: Float[Tensor, "B n d_model"] = head_output.transpose(1, 2).reshape(B, n, h * d_k)
        return linear(concat, self.wo, self.bo)


class FreeHeadMixer(HeadMixer):
    """`HeadMixer` where h * d_k is not d_model."""

    def forward(self, head_output: Float[Tensor, "B h n d_k"]) -> Float[Tensor, "B n d_model"]:
        """The heads side by side, times W_O."""
        B, h, n, d_k = head_output.shape
        concat: Float[Tensor, "B n h*d_k"] = head_output.transpose(1, 2).reshape(B, n, h * d_k)
        return linear(concat, self.wo, self.bo)


class Attention(nn.Module):
    """What all four layers learn: W_Q, W_K, W_V with their biases, and W_O."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d_model, d_k, biased = config.d_model, config.d_k, config.biases != "none"
        self.wq = matrix(config.h * d_k, d_model)
        self.wk = matrix(config.h_kv * d_k, d_model)
        self.wv = matrix(config.h_kv * d_k, d_model)
        self.bq = bias(config.h * d_k, wanted=biased)
        self.bk = bias(config.h_kv * d_k, wanted=biased)
        self.bv = bias(config.h_kv * d_k, wanted=biased)
        fits = config.h * d_k == d_model
        self.output = HeadMixer(config) if fits else FreeHeadMixer(config)
        self.h, self.h_kv, self.d_k = config.h, config.h_kv, d_k
        self.dropout = config.dropout
        chosen = explicit if config.attention == "explicit" else fused
        self.attend_across: Attend = (
            chosen.attend_across_grouped if config.grouped else chosen.attend_across
        )

    def join(self, cache: LayerCache) -> None:
        """Let a small layer's cache hold W_Q, W_K and W_V as one matrix.

        A step of one token then makes one product instead of three. In a large layer the
        products themselves take the time, and the copy would take memory.
        """
        if self.wq.numel() + 2 * self.wk.numel() <= JOINED_BELOW:
            w_qkv: Float[Tensor, "d_qkv d_model"] = cat((self.wq, self.wk, self.wv))
            b_qkv: Float[Tensor, " d_qkv"] | None = (
                None
                if self.bq is None or self.bk is None or self.bv is None
                else cat((self.bq, self.bk, self.bv))
            )
            cache.join(w_qkv, b_qkv)

    def continued(
        self,
        x: Float[Tensor, "B n d_model"],
        rotation: Float[Tensor, "2 n d_k"] | None,
        cache: LayerCache,
    ) -> Float[Tensor, "B n d_model"]:
        """What `n` new positions take from all `m` so far, whose keys and values are kept.

        Args:
            x: The new positions.
            rotation: Cosines and sines of the rotary positions.
            cache: Keys and values of those before; the new ones are added.
        """
        B, n, _ = x.shape
        if cache.w_qkv is None:
            q: Float[Tensor, "B h n d_k"] = (
                linear(x, self.wq, self.bq).view(B, n, self.h, self.d_k).transpose(1, 2)
            )
            new_k: Float[Tensor, "B h_kv n d_k"] = (
                linear(x, self.wk, self.bk).view(B, n, self.h_kv, self.d_k).transpose(1, 2)
            )
            new_v: Float[Tensor, "B h_kv n d_k"] = (
                linear(x, self.wv, self.bv).view(B, n, self.h_kv, self.d_k).transpose(1, 2)
            )
        else:
            heads: Float[Tensor, "B h_qkv n d_k"] = (
                linear(x, cache.w_qkv, cache.b_qkv).view(B, n, -1, self.d_k).transpose(1, 2)
            )
            q = heads.narrow(1, 0, self.h)
            new_k = heads.narrow(1, self.h, self.h_kv)
            new_v = heads.narrow(1, self.h + self.h_kv, self.h_kv)
        if rotation is not None:
            cosines: Float[Tensor, "n d_k"] = rotation[0]
            sines: Float[Tensor, "n d_k"] = rotation[1]
            q = q * cosines + q.roll(self.d_k // 2, -1) * sines
            new_k = new_k * cosines + new_k.roll(self.d_k // 2, -1) * sines
        cache.append(new_k, new_v)
        k: Float[Tensor, "B h_kv m d_k"] = cache.keys()
        v: Float[Tensor, "B h_kv m d_k"] = cache.values()
        visible: Bool[Tensor, "B 1 n m"] | None = cache.visible
        head_output: Float[Tensor, "B h n d_k"] = self.attend_across(q, k, v, visible, 0.0)
        output: Float[Tensor, "B n d_model"] = self.output(head_output)
        return output

    def recalled(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n m"] | None,
        cache: MemoryCache,
    ) -> Float[Tensor, "B n d_model"]:
        """What `n` positions take from the other sequence, whose keys and values are kept.

        Args:
            x: The sequence that looks.
            memory: The sequence that is looked at.
            visible: Whether the query (third axis) may look at the key; None for everywhere.
            cache: The other sequence's keys and values; made here the first time.
        """
        B, n, _ = x.shape
        m = memory.shape[1]
        q: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wq, self.bq).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        if cache.k is None:
            new_k: Float[Tensor, "B h_kv m d_k"] = (
                linear(memory, self.wk, self.bk).view(B, m, self.h_kv, -1).transpose(1, 2)
            )
            new_v: Float[Tensor, "B h_kv m d_k"] = (
                linear(memory, self.wv, self.bv).view(B, m, self.h_kv, -1).transpose(1, 2)
            )
            cache.keep(new_k, new_v)
        k: Float[Tensor, "B h_kv m d_k"] | None = cache.k
        v: Float[Tensor, "B h_kv m d_k"] | None = cache.v
        head_output: Float[Tensor, "B h n d_k"] = self.attend_across(q, k, v, visible, 0.0)
        output: Float[Tensor, "B n d_model"] = self.output(head_output)
        return output


class SelfAttention(Attention):
    """Multi-head attention of a sequence to itself."""

    attend: Attend

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config)
        self.attend = (
            explicit.attend_self
            if config.attention == "explicit"
            else partial(fused.attend_self, causal=causal)
        )

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        visible: Bool[Tensor, "B 1 n n"] | None = None,
        rotation: Float[Tensor, "2 n d_k"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the positions it may see.

        Args:
            x: The sequence.
            visible: Whether the query (third axis) may look at the key; None for the left
                side of a causal layer, and for everywhere in another.
            rotation: Cosines and sines of the rotary positions.
            cache: Keys and values of what came before `x`, which also says who is visible.
        """
        if cache is not None:
            return self.continued(x, rotation, cache)
        B, n, _ = x.shape
        q: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wq, self.bq).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        k: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wk, self.bk).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        v: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wv, self.bv).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        if rotation is not None:
            cosines: Float[Tensor, "n d_k"] = rotation[0]
            sines: Float[Tensor, "n d_k"] = rotation[1]
            q = q * cosines + q.roll(self.d_k // 2, -1) * sines
            k = k * cosines + k.roll(self.d_k // 2, -1) * sines
        head_output: Float[Tensor, "B h n d_k"] = self.attend(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.output(head_output)
        return output


class GroupedSelfAttention(Attention):
    """Grouped-query attention of a sequence to itself; multi-query where h_kv is 1."""

    attend: Attend

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config)
        self.attend = (
            explicit.attend_self_grouped
            if config.attention == "explicit"
            else partial(fused.attend_self_grouped, causal=causal)
        )

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        visible: Bool[Tensor, "B 1 n n"] | None = None,
        rotation: Float[Tensor, "2 n d_k"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the positions it may see.

        Args:
            x: The sequence.
            visible: Whether the query (third axis) may look at the key; None for the left
                side of a causal layer, and for everywhere in another.
            rotation: Cosines and sines of the rotary positions.
            cache: Keys and values of what came before `x`, which also says who is visible.
        """
        if cache is not None:
            return self.continued(x, rotation, cache)
        B, n, _ = x.shape
        q: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wq, self.bq).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        k: Float[Tensor, "B h_kv n d_k"] = (
            linear(x, self.wk, self.bk).view(B, n, self.h_kv, self.d_k).transpose(1, 2)
        )
        v: Float[Tensor, "B h_kv n d_k"] = (
            linear(x, self.wv, self.bv).view(B, n, self.h_kv, self.d_k).transpose(1, 2)
        )
        if rotation is not None:
            cosines: Float[Tensor, "n d_k"] = rotation[0]
            sines: Float[Tensor, "n d_k"] = rotation[1]
            q = q * cosines + q.roll(self.d_k // 2, -1) * sines
            k = k * cosines + k.roll(self.d_k // 2, -1) * sines
        head_output: Float[Tensor, "B h n d_k"] = self.attend(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.output(head_output)
        return output


class CrossAttention(Attention):
    """Multi-head attention of one sequence to another: Q from `x`, K and V from `memory`."""

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n m"] | None = None,
        cache: MemoryCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the other sequence.

        Args:
            x: The sequence that looks.
            memory: The sequence that is looked at.
            visible: Whether the query (third axis) may look at the key; None for everywhere.
            cache: Where the other sequence's keys and values are kept between steps.
        """
        if cache is not None:
            return self.recalled(x, memory, visible, cache)
        B, n, _ = x.shape
        m = memory.shape[1]
        q: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wq, self.bq).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        k: Float[Tensor, "B h m d_k"] = (
            linear(memory, self.wk, self.bk).view(B, m, self.h_kv, self.d_k).transpose(1, 2)
        )
        v: Float[Tensor, "B h m d_k"] = (
            linear(memory, self.wv, self.bv).view(B, m, self.h_kv, self.d_k).transpose(1, 2)
        )
        head_output: Float[Tensor, "B h n d_k"] = self.attend_across(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.output(head_output)
        return output


class GroupedCrossAttention(Attention):
    """`CrossAttention` whose query heads share keys and values."""

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n m"] | None = None,
        cache: MemoryCache | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the other sequence.

        Args:
            x: The sequence that looks.
            memory: The sequence that is looked at.
            visible: Whether the query (third axis) may look at the key; None for everywhere.
            cache: Where the other sequence's keys and values are kept between steps.
        """
        if cache is not None:
            return self.recalled(x, memory, visible, cache)
        B, n, _ = x.shape
        m = memory.shape[1]
        q: Float[Tensor, "B h n d_k"] = (
            linear(x, self.wq, self.bq).view(B, n, self.h, self.d_k).transpose(1, 2)
        )
        k: Float[Tensor, "B h_kv m d_k"] = (
            linear(memory, self.wk, self.bk).view(B, m, self.h_kv, self.d_k).transpose(1, 2)
        )
        v: Float[Tensor, "B h_kv m d_k"] = (
            linear(memory, self.wv, self.bv).view(B, m, self.h_kv, self.d_k).transpose(1, 2)
        )
        head_output: Float[Tensor, "B h n d_k"] = self.attend_across(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.output(head_output)
        return output


def self_attention(config: ModelConfig, *, causal: bool) -> nn.Module:
    """The self-attention layer that the configuration asks for."""
    layer = GroupedSelfAttention if config.grouped else SelfAttention
    return layer(config, causal=causal)


def cross_attention(config: ModelConfig) -> nn.Module:
    """The cross-attention layer that the configuration asks for."""
    return (GroupedCrossAttention if config.grouped else CrossAttention)(config)
