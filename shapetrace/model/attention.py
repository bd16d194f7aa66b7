"""Attention as a layer: project to heads, look, put the heads together again.

Two choices of structure, so four layers: who is looked at (the own sequence, or the
encoder's), and whether every query head has its own keys and values or shares them.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear

from shapetrace.model import explicit, fused
from shapetrace.model.config import ModelConfig

Attend = Callable[..., Float[Tensor, "B h n d_k"]]


class HeadMixer(nn.Linear):
    """Concatenates the heads and mixes them: W_O."""

    def forward(self, head_output: Float[Tensor, "B h n d_k"]) -> Float[Tensor, "B n d_model"]:
        """The heads side by side, times W_O."""
        B, h, n, d_k = head_output.shape
        concat: Float[Tensor, "B n d_model"] = head_output.transpose(1, 2).reshape(B, n, h * d_k)
        return linear(concat, self.weight, self.bias)


class FreeHeadMixer(nn.Linear):
    """`HeadMixer` where h * d_k is not d_model."""

    def forward(self, head_output: Float[Tensor, "B h n d_k"]) -> Float[Tensor, "B n d_model"]:
        """The heads side by side, times W_O."""
        B, h, n, d_k = head_output.shape
        concat: Float[Tensor, "B n h*d_k"] = head_output.transpose(1, 2).reshape(B, n, h * d_k)
        return linear(concat, self.weight, self.bias)


class Attention(nn.Module):
    """The projections that all four layers have: wq, wk, wv, wo."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        h, h_kv, d_k, d_model = config.h, config.h_kv, config.d_k, config.d_model
        bias = config.biases != "none"
        self.wq = nn.Linear(d_model, h * d_k, bias=bias)
        self.wk = nn.Linear(d_model, h_kv * d_k, bias=bias)
        self.wv = nn.Linear(d_model, h_kv * d_k, bias=bias)
        mixer = HeadMixer if h * d_k == d_model else FreeHeadMixer
        self.wo = mixer(h * d_k, d_model, bias=config.biases == "all")
        self.h, self.h_kv, self.d_k = h, h_kv, d_k
        self.dropout = config.dropout


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
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the positions it may see.

        Args:
            x: The sequence.
            visible: Whether the query (third axis) may look at the key; None for the left
                side of a causal layer, and for everywhere in another.
            rotation: Cosines and sines of the rotary positions.
        """
        B, n, _ = x.shape
        q: Float[Tensor, "B h n d_k"] = self.wq(x).view(B, n, self.h, self.d_k).transpose(1, 2)
        k: Float[Tensor, "B h n d_k"] = self.wk(x).view(B, n, self.h, self.d_k).transpose(1, 2)
        v: Float[Tensor, "B h n d_k"] = self.wv(x).view(B, n, self.h, self.d_k).transpose(1, 2)
        if rotation is not None:
            cosines: Float[Tensor, "n d_k"] = rotation[0]
            sines: Float[Tensor, "n d_k"] = rotation[1]
            q = q * cosines + q.roll(self.d_k // 2, -1) * sines
            k = k * cosines + k.roll(self.d_k // 2, -1) * sines
        head_output: Float[Tensor, "B h n d_k"] = self.attend(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.wo(head_output)
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
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the positions it may see.

        Args:
            x: The sequence.
            visible: Whether the query (third axis) may look at the key; None for the left
                side of a causal layer, and for everywhere in another.
            rotation: Cosines and sines of the rotary positions.
        """
        B, n, _ = x.shape
        q: Float[Tensor, "B h n d_k"] = self.wq(x).view(B, n, self.h, self.d_k).transpose(1, 2)
        k: Float[Tensor, "B h_kv n d_k"] = self.wk(x).view(B, n, -1, self.d_k).transpose(1, 2)
        v: Float[Tensor, "B h_kv n d_k"] = self.wv(x).view(B, n, -1, self.d_k).transpose(1, 2)
        if rotation is not None:
            cosines: Float[Tensor, "n d_k"] = rotation[0]
            sines: Float[Tensor, "n d_k"] = rotation[1]
            q = q * cosines + q.roll(self.d_k // 2, -1) * sines
            k = k * cosines + k.roll(self.d_k // 2, -1) * sines
        head_output: Float[Tensor, "B h n d_k"] = self.attend(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.wo(head_output)
        return output


class CrossAttention(Attention):
    """Multi-head attention of one sequence to another: Q from `x`, K and V from `memory`."""

    attend: Attend

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        chosen = explicit if config.attention == "explicit" else fused
        self.attend = chosen.attend_across

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n m"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the other sequence.

        Args:
            x: The sequence that looks.
            memory: The sequence that is looked at.
            visible: Whether the query (third axis) may look at the key; None for everywhere.
        """
        B, n, _ = x.shape
        m = memory.shape[1]
        q: Float[Tensor, "B h n d_k"] = self.wq(x).view(B, n, self.h, self.d_k).transpose(1, 2)
        k: Float[Tensor, "B h m d_k"] = self.wk(memory).view(B, m, -1, self.d_k).transpose(1, 2)
        v: Float[Tensor, "B h m d_k"] = self.wv(memory).view(B, m, -1, self.d_k).transpose(1, 2)
        head_output: Float[Tensor, "B h n d_k"] = self.attend(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.wo(head_output)
        return output


class GroupedCrossAttention(Attention):
    """`CrossAttention` whose query heads share keys and values."""

    attend: Attend

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        chosen = explicit if config.attention == "explicit" else fused
        self.attend = chosen.attend_across_grouped

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        visible: Bool[Tensor, "B 1 n m"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """What each position takes from the other sequence.

        Args:
            x: The sequence that looks.
            memory: The sequence that is looked at.
            visible: Whether the query (third axis) may look at the key; None for everywhere.
        """
        B, n, _ = x.shape
        m = memory.shape[1]
        q: Float[Tensor, "B h n d_k"] = self.wq(x).view(B, n, self.h, self.d_k).transpose(1, 2)
        k: Float[Tensor, "B h_kv m d_k"] = self.wk(memory).view(B, m, -1, self.d_k).transpose(1, 2)
        v: Float[Tensor, "B h_kv m d_k"] = self.wv(memory).view(B, m, -1, self.d_k).transpose(1, 2)
        head_output: Float[Tensor, "B h n d_k"] = self.attend(
            q, k, v, visible, self.dropout if self.training else 0.0
        )
        output: Float[Tensor, "B n d_model"] = self.wo(head_output)
        return output


def self_attention(config: ModelConfig, *, causal: bool) -> nn.Module:
    """The self-attention layer that the configuration asks for."""
    layer = GroupedSelfAttention if config.grouped else SelfAttention
    return layer(config, causal=causal)


def cross_attention(config: ModelConfig) -> nn.Module:
    """The cross-attention layer that the configuration asks for."""
    return (GroupedCrossAttention if config.grouped else CrossAttention)(config)
