"""Who reads whom: the weights of every attention layer in one pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softmax

from shapetrace.model.layers import explicit
from shapetrace.model.layers.attention import Attention, CrossAttention, GroupedCrossAttention


@dataclass(frozen=True)
class Look:
    """What one attention layer looked at.

    Attributes:
        path: The layer: ``blocks.0.attention``.
        cross: Whether it looks at another sequence than its own.
        weights: How much of each key each query takes; rows sum to 1.
        visible: Whether the query may look at the key; None for everywhere.
    """

    path: str
    cross: bool
    weights: Float[Tensor, "B h n m"]
    visible: Bool[Tensor, "B 1 n m"] | None


def looks(model: nn.Module, run: Callable[[], object]) -> list[Look]:
    """The weights of every attention layer while something runs, in the order of the layers.

    Args:
        model: The model, of explicit attention (a fused kernel may keep its mask to itself).
        run: Runs the model once.
    """
    found: list[Look] = []
    with _watched(model, found), torch.no_grad():
        run()
    return found


@contextmanager
def _watched(model: nn.Module, found: list[Look]) -> Iterator[None]:
    changed: list[tuple[nn.Module, str, object]] = []
    try:
        for path, module in model.named_modules():
            if isinstance(module, Attention):
                cross = isinstance(module, CrossAttention | GroupedCrossAttention)
                name = "attend_across" if cross else "attend"
                changed.append((module, name, getattr(module, name)))
                setattr(module, name, _watcher(path, cross, found))
        yield
    finally:
        for module, name, before in changed:
            setattr(module, name, before)


def _watcher(path: str, cross: bool, found: list[Look]) -> Callable[..., Tensor]:  # noqa: FBT001
    """Attention that also keeps its weights."""

    def attend(
        q: Float[Tensor, "B h n d_k"],
        k: Float[Tensor, "B h_kv m d_k"],
        v: Float[Tensor, "B h_kv m d_k"],
        visible: Bool[Tensor, "B 1 n m"] | None,
        drop: float,
    ) -> Float[Tensor, "B h n d_k"]:
        found.append(Look(path, cross, weights_of(q, k, visible), visible))
        return explicit.attend_across_grouped(q, k, v, visible, drop)

    return attend


def weights_of(
    q: Float[Tensor, "B h n d_k"],
    k: Float[Tensor, "B h_kv m d_k"],
    visible: Bool[Tensor, "B 1 n m"] | None,
) -> Float[Tensor, "B h n m"]:
    """softmax(q k^T / sqrt(d_k)); zero where nothing may be looked at."""
    shared_k: Float[Tensor, "B h m d_k"] = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores: Float[Tensor, "B h n m"] = q @ shared_k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if visible is None:
        return softmax(scores, dim=-1)
    return softmax(scores.masked_fill(~visible, float("-inf")), dim=-1).masked_fill(~visible, 0.0)
