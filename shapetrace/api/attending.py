"""Look inside: the attention weights of one pass over a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shapetrace.api.choosing import choose_config, directory_of, name_of, plainly
from shapetrace.api.inputs import text_inputs
from shapetrace.errors import ShapetraceError, did_you_mean
from shapetrace.report.attention import AttentionView, Layer
from shapetrace.text import tokenizer_for

if TYPE_CHECKING:
    from shapetrace.api.inputs import Inputs
    from shapetrace.model import ModelConfig
    from shapetrace.model.looking import Look

_SUM_TOLERANCE = 1e-3


def attention(
    config: str,
    text: str,
    *,
    settings: Sequence[str] = (),
    target_text: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    query: str | None = None,
    seed: int = 0,
) -> AttentionView:
    """The weights of a model's attention layers on a text.

    Args:
        config: A preset's name, a TOML or JSON file, or a Hugging Face directory.
        text: The text that is read.
        settings: ``key=value`` changes to the configuration.
        target_text: What an encoder-decoder writes; the text itself when None.
        layer: Number of the block; all of them when None.
        head: Number of the head; all of them when None.
        query: A token of the text, or its place; all of them when None.
        seed: Of random weights.

    Raises:
        ShapetraceError: For a layer, head or token that is not there, and as `forward`.
    """
    chosen = choose_config(config, settings, "explicit")
    _check_numbers(chosen, layer, head)
    folder = directory_of(config)
    tokenizer = tokenizer_for(folder, chosen.vocab_size)
    targets = None if target_text is None else [target_text]
    inputs = text_inputs(chosen, tokenizer, [text], targets)
    from shapetrace.api.looking import look  # noqa: PLC0415 - needs torch

    with plainly():
        found = look(name_of(config), chosen, folder, inputs, seed)
    layers = tuple(
        _layer(one, inputs, chosen) for one in found if layer is None or _number(one.path) == layer
    )
    for one in layers:
        if one.worst_sum() > _SUM_TOLERANCE:
            raise ShapetraceError(
                f"{one.path}: the weights of a row sum to {1 + one.worst_sum():.4f} and not to 1; "
                "are the weights finite?"
            )
    place = None if query is None else _place(query, layers)
    return AttentionView(name_of(config), layers, head, place)


def _check_numbers(config: ModelConfig, layer: int | None, head: int | None) -> None:
    layers = max(config.layers, config.decoder_layers)
    if layer is not None and not 0 <= layer < layers:
        raise ShapetraceError(f"--layer {layer}: the model has layers 0 to {layers - 1}")
    if head is not None and not 0 <= head < config.h:
        raise ShapetraceError(f"--head {head}: the model has heads 0 to {config.h - 1}")


def _number(path: str) -> int:
    return next(int(part) for part in path.split(".") if part.isdigit())


def _layer(look: Look, inputs: Inputs, config: ModelConfig) -> Layer:
    source = tuple(token for token, _ in inputs.source.tokens[0])
    target = inputs.target or inputs.source
    decodes = config.kind == "encoder-decoder" and look.path.startswith("decoder.")
    queries = tuple(token for token, _ in target.tokens[0]) if decodes else source
    keys = source if look.cross else queries
    weights = look.weights[0].tolist()
    if look.visible is None:
        visible = tuple((True,) * len(keys) for _ in queries)
    else:
        visible = tuple(map(tuple, look.visible[0, 0].tolist()))
    rows = tuple(tuple(tuple(row) for row in head) for head in weights)
    return Layer(look.path, look.cross, queries, keys, rows, visible)


def _place(query: str, layers: Sequence[Layer]) -> int:
    """The place of a token that is named by its text or its number; the last of equal ones."""
    tokens = layers[0].queries if layers else ()
    for layer in layers:
        tokens = layer.queries
    named = [place for place, token in enumerate(tokens) if _bare(token) == _bare(query)]
    if named:
        return named[-1]
    if query.isdecimal() and int(query) < len(tokens):
        return int(query)
    known = list(dict.fromkeys(map(_bare, tokens)))
    raise ShapetraceError(
        f"--query {query!r} is no token of the text: {did_you_mean(query, known)}"
    )


def _bare(token: str) -> str:
    """A token without the mark or space that stands for the one before it."""
    return token.lstrip("\u2581\u0120 ").removeprefix("##") or token
