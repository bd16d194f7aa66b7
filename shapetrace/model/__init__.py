"""A typed Transformer: encoder, decoder and encoder-decoder, every tensor annotated.

Axes, in every annotation: `B` sequences in the batch, `n` positions, `m` positions of the
keys and values where they are others than the queries', `d_model` width of a token, `h`
query heads, `h_kv` key/value heads, `d_k` width of a head, `d_ff` width of the
feed-forward's hidden layer, `vocab_size` tokens.

Importing this package does not import torch; the first use of a model does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.model.config import ModelConfig
from shapetrace.model.errors import ModelError
from shapetrace.model.presets import presets

if TYPE_CHECKING:
    from shapetrace.model.checkpoints.weights import from_pretrained
    from shapetrace.model.transformer import (
        Decoder,
        Encoder,
        EncoderDecoder,
        MaskedEncoder,
        Transformer,
        build,
    )

__all__ = [
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "MaskedEncoder",
    "ModelConfig",
    "ModelError",
    "Transformer",
    "build",
    "from_pretrained",
    "presets",
]

_TRANSFORMER = ("Decoder", "Encoder", "EncoderDecoder", "MaskedEncoder", "Transformer", "build")
_WEIGHTS = ("from_pretrained",)


def __getattr__(name: str) -> object:
    """Import what needs torch at its first use."""
    if name in _TRANSFORMER:
        from shapetrace.model import transformer  # noqa: PLC0415 - torch is slow to import

        return getattr(transformer, name)
    if name in _WEIGHTS:
        from shapetrace.model.checkpoints import weights  # noqa: PLC0415 - torch is slow to import

        return getattr(weights, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
