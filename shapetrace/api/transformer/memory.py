"""Whether a run fits in memory, told before anything large is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError
from shapetrace.free_memory import free_memory
from shapetrace.units import format_bytes, format_count

if TYPE_CHECKING:
    from shapetrace.model import ModelConfig

ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of one number, by dtype."""

_MOST_BYTES = 2**63


def activation_bytes(config: ModelConfig, B: int, n: int, item: int) -> int:
    """About the most bytes of activations alive at once in a forward without gradients.

    One block is alive at a time, and then the logits: the larger of the two, beside the
    residual stream. An estimate for refusing what cannot fit, not for reporting.

    Args:
        config: The model.
        B: Texts.
        n: Tokens in each.
        item: Bytes of one number.
    """
    stream = 3 * B * n * config.d_model
    looking, hidden = _in_a_block(config, B, n)
    logits = 0 if config.head == "none" else B * n * config.vocab_size
    return item * (stream + max(looking, hidden, logits))


def kept_bytes(config: ModelConfig, B: int, n: int, item: int) -> int:
    """About the most bytes of activations in a forward and backward: every block's are kept.

    Args:
        config: The model.
        B: Texts.
        n: Tokens in each.
        item: Bytes of one number.
    """
    stream = 4 * B * n * config.d_model  # a block's two normed inputs and what it adds
    looking, hidden = _in_a_block(config, B, n)
    blocks = max(config.layers, config.decoder_layers)
    logits = 3 * B * n * config.vocab_size  # themselves, their logarithms, their gradient
    return item * (blocks * (stream + looking + hidden) + logits)


def _in_a_block(config: ModelConfig, B: int, n: int) -> tuple[int, int]:
    """How many numbers a block's attention holds, and how many its feed-forward.

    The heads with the values they mix; where scores are made, the weights and what the
    softmax was given; the hidden features before and after.
    """
    heads = B * n * config.d_k * (2 * config.h + 2 * config.h_kv)
    scores = 2 * B * config.h * n * n if config.attention == "explicit" else 0
    hidden = B * n * config.d_ff * (3 if config.gated else 2)
    return heads + scores, hidden


def looked_at_bytes(config: ModelConfig, n: int) -> int:
    """Bytes of every attention layer's weights on one text of `n` tokens, held twice."""
    layers = config.layers + (2 * config.decoder_layers if config.kind == "encoder-decoder" else 0)
    return 2 * ITEM_BYTES["float32"] * layers * config.h * n * n


def check_countable(config: ModelConfig, B: int, n: int) -> None:
    """Refuse ids of which a tensor would have more bytes than 64 bits can count.

    Args:
        config: The model.
        B: Texts.
        n: Tokens in each.

    Raises:
        ShapetraceError: Naming the size.
    """
    item = max(ITEM_BYTES.values())
    if max(activation_bytes(config, B, n, item), item * B * n * n) >= _MOST_BYTES:
        raise ShapetraceError(
            f"{B} texts of {n} tokens make tensors of more bytes than 64 bits can count; "
            "use a smaller --batch or --seq"
        )


META = "--device meta, which needs no weights, or a smaller --batch, --seq or --dtype"
"""The way out of a forward pass that does not fit."""


def check_fits(
    name: str,
    parameters: int,
    activations: int,
    device: str,
    way_out: str = META,
    *,
    kept: str = "parameters",
) -> None:
    """Refuse a run that needs more memory than there is.

    Args:
        name: What is to run, for the message.
        parameters: Bytes of the weights, and of what is kept for each of them.
        activations: Bytes of the activations, estimated.
        device: ``cpu`` or ``cuda``.
        way_out: What to use instead, in the command's own options.
        kept: What the bytes of the weights hold.

    Raises:
        ShapetraceError: With the bytes needed and the way out.
    """
    needed, available = parameters + activations, available_bytes(device)
    if available is None or needed <= available:
        return
    raise ShapetraceError(
        f"{name} needs {format_count(needed)} bytes ({format_bytes(parameters)} of {kept}, "
        f"about {format_bytes(activations)} of activations), and {device} has "
        f"{format_bytes(available)} left; use {way_out}"
    )


def available_bytes(device: str) -> int | None:
    """Bytes that can still be had on a device; None where the system does not say."""
    if device == "cuda":
        import torch  # noqa: PLC0415 - only a real run needs it

        return int(torch.cuda.mem_get_info()[0])
    return free_memory()
