"""What a Transformer costs as formulas in its sizes: to read, to vary, to compare with a run.

Names are those of every annotation: B, n, m, d_model, h, h_kv, d_k, d_ff, vocab_size; with
`layers` and `decoder_layers` the blocks of a stack. One multiply-add is 2 FLOPs, a causal
mask is not discounted, biases and elementwise work are not counted.
Source: the products in Vaswani et al., Attention Is All You Need (2017); Kaplan et al.,
Scaling Laws for Neural Language Models (2020), table 1, without its approximations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapetrace.dims import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROJECTIONS = "2*B*n*d_model*d_k*(2*h+2*h_kv)"
_SCORES = "4*B*h*n*n*d_k"
_CROSS_PROJECTIONS = "2*B*d_model*d_k*(2*h*n+2*h_kv*m)"
_CROSS_SCORES = "4*B*h*n*m*d_k"


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """One quantity as an expression of names.

    Attributes:
        quantity: What it is: ``flops of attention``.
        text: The expression: ``layers*4*B*h*n*n*d_k``.
    """

    quantity: str
    text: str

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number at some sizes.

        Raises:
            UnboundNameError: A name that the expression uses has no size.
        """
        return int(evaluate(self.text, sizes))


def forward_flops(config: Mapping[str, object]) -> tuple[ClosedForm, ...]:
    """FLOPs of one forward by part, `n` tokens into the stack that makes the output.

    In an encoder-decoder `n` is the target's length and `m` the source's.

    Args:
        config: A Transformer's configuration, as `Trace.config` has it: ``kind``,
            ``gated`` and ``head`` are read. A pooler is no part of the forward.
    """
    decoding = config.get("kind") == "encoder-decoder"
    stack = "decoder_layers" if decoding else "layers"
    attention = [f"{stack}*({_PROJECTIONS}+{_SCORES})"]
    feedforward = [f"{stack}*{_feedforward(config)}"]
    if decoding:
        attention.append(f"decoder_layers*({_CROSS_PROJECTIONS}+{_CROSS_SCORES})")
        attention.append(f"layers*({_over_source(_PROJECTIONS)}+{_over_source(_SCORES)})")
        feedforward.append(f"layers*{_over_source(_feedforward(config))}")
    return (
        ClosedForm("flops of attention", "+".join(attention)),
        ClosedForm("flops of feed-forward", "+".join(feedforward)),
        ClosedForm("flops of head", _head(config)),
    )


def step_flops(config: Mapping[str, object]) -> tuple[ClosedForm, ...]:
    """FLOPs of a decoder's pass over `n` new tokens where `m` can be looked at, by part.

    Only the last token is scored. In an encoder-decoder the source has `s` tokens, whose
    keys and values are kept: making them is `source_flops`.

    Args:
        config: A Transformer's configuration, as `Trace.config` has it.
    """
    decoding = config.get("kind") == "encoder-decoder"
    stack = "decoder_layers" if decoding else "layers"
    attention = [f"{stack}*({_PROJECTIONS}+4*B*h*n*m*d_k)"]
    if decoding:
        attention.append("decoder_layers*(4*B*n*d_model*d_k*h+4*B*h*n*s*d_k)")
    return (
        ClosedForm("flops of attention", "+".join(attention)),
        ClosedForm("flops of feed-forward", f"{stack}*{_feedforward(config)}"),
        ClosedForm("flops of head", "2*B*d_model*vocab_size"),
    )


def encoder_flops(config: Mapping[str, object]) -> ClosedForm:
    """FLOPs of an encoder-decoder's encoder over `s` tokens."""
    parts = (_PROJECTIONS, _SCORES, _feedforward(config))
    return ClosedForm(
        "flops of encoder", "layers*(" + "+".join(part.replace("*n", "*s") for part in parts) + ")"
    )


def source_flops() -> ClosedForm:
    """FLOPs of a decoder's keys and values of the `s` tokens of a source, made once."""
    return ClosedForm(
        "flops of the source's keys and values", "4*decoder_layers*B*s*d_model*d_k*h_kv"
    )


def cache_bytes(item: int = 2) -> ClosedForm:
    """Bytes of keys and values kept for `m` positions.

    Args:
        item: Bytes of one number; 2 in half precision.
    """
    return ClosedForm("bytes of the key/value cache", f"2*layers*B*h_kv*m*d_k*{item}")


def _feedforward(config: Mapping[str, object]) -> str:
    return f"2*B*n*d_model*d_ff*{3 if config.get('gated') else 2}"


def _head(config: Mapping[str, object]) -> str:
    parts = []
    if config.get("head") == "mlm":
        parts.append("2*B*n*d_model*d_model")
    if config.get("head") in ("lm", "mlm"):
        parts.append("2*B*n*d_model*vocab_size")
    return "+".join(parts) or "0"


def _over_source(text: str) -> str:
    """The same over the source's positions."""
    return text.replace("*n", "*m")
