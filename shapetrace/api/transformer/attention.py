"""Look inside: the attention weights of one pass over a text."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.api.transformer.choices import (
    check_run,
    check_tokenizer,
    choose_config,
    directory_of,
    name_of,
    plainly,
)
from shapetrace.api.transformer.inputs import only_text, text_inputs
from shapetrace.api.transformer.runners import run_looking
from shapetrace.errors import ShapetraceError, did_you_mean
from shapetrace.report.attention import AttentionView, Layer
from shapetrace.text import tokenizer_for

if TYPE_CHECKING:
    from pathlib import Path

    from shapetrace.api.transformer.inputs import Inputs
    from shapetrace.model import ModelConfig
    from shapetrace.model.looking import Look
    from shapetrace.text.tokenizer_json import Choice

_SUM_TOLERANCE = 1e-3


def attention(
    config: str,
    text: str | None = None,
    *,
    text_file: Path | None = None,
    settings: Sequence[str] = (),
    target_text: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    query: str | None = None,
    seed: int = 0,
    tokenizer: Choice = "auto",
) -> AttentionView:
    """The weights of a model's attention layers on a text.

    Args:
        config: A preset's name, a TOML or JSON file, or a Hugging Face directory.
        text: The text that is read.
        text_file: A UTF-8 file with it, instead of `text`.
        settings: ``key=value`` changes to the configuration.
        target_text: What an encoder-decoder writes; the text itself when None.
        layer: Number of the block; all of them when None.
        head: Number of the head; all of them when None.
        query: A token of the text, or its place; all of them when None. Of an
            encoder-decoder, layers that do not read for such a token are left out.
        seed: Of random weights.
        tokenizer: ``auto`` for the model's own, or ``bytes`` whatever it has.

    Raises:
        ShapetraceError: For a layer, head or token that is not there, and as `forward`.
    """
    check_run("cpu", "float32", seed)
    check_tokenizer(tokenizer)
    chosen = choose_config(config, settings, "explicit")
    _check_numbers(chosen, layer, head)
    folder = directory_of(config)
    words = tokenizer_for(folder, chosen.vocab_size, tokenizer)
    targets = None if target_text is None else [target_text]
    given = only_text(text, text_file)
    inputs = text_inputs(chosen, words, [given], targets)
    with plainly():
        found = run_looking(name_of(config), chosen, folder, inputs, seed)
    layers = tuple(
        _layer(one, inputs, chosen) for one in found if layer is None or _number(one.path) == layer
    )
    for one in layers:
        if not one.worst_sum() <= _SUM_TOLERANCE:  # NaN is not
            raise ShapetraceError(
                f"{one.path}: the weights of a row sum to {1 + one.worst_sum():.4f} and not to 1; "
                "are the weights finite?"
            )
    if query is not None:
        layers = _asked(query, layers)
    return AttentionView(name_of(config), layers, head)


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
    if look.visible is None:
        visible = tuple((True,) * len(keys) for _ in queries)
    else:
        visible = tuple(map(tuple, look.visible[0, 0].tolist()))
    # An eighth of what Python's own numbers take, which long texts have millions of.
    rows = tuple(tuple(array("f", row.tolist()) for row in head) for head in look.weights[0])
    return Layer(
        path=look.path, cross=look.cross, queries=queries, keys=keys, weights=rows, visible=visible
    )


def _asked(query: str, layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers in which a token reads, with its place in each."""
    places = [_place(query, layer.queries) for layer in layers]
    if layers and all(place is None for place in places):
        known = list(dict.fromkeys(_bare(token) for layer in layers for token in layer.queries))
        raise ShapetraceError(
            f"--query {query!r} is no token of the text: {did_you_mean(query, known)}"
        )
    return tuple(
        replace(layer, query=place)
        for layer, place in zip(layers, places, strict=True)
        if place is not None
    )


def _place(query: str, tokens: Sequence[str]) -> int | None:
    """The place of a token that is named by its text or its number; the last of equal ones."""
    named = [place for place, token in enumerate(tokens) if _bare(token) == _bare(query)]
    if named:
        return named[-1]
    return int(query) if query.isdecimal() and int(query) < len(tokens) else None


def _bare(token: str) -> str:
    """A token without the mark or space that stands for the one before it."""
    return token.lstrip("\u2581\u0120 ").removeprefix("##") or token
