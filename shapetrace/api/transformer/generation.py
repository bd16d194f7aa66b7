"""Generate text: prompts to ids, ids to text as they come, and what each step cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shapetrace.api.transformer.choices import (
    check_run,
    check_tokenizer,
    choose_config,
    directory_of,
    dtype_for,
    name_of,
    plainly,
)
from shapetrace.api.transformer.inputs import read_texts
from shapetrace.api.transformer.requests import GenerationRequest, OnText
from shapetrace.api.transformer.runners import run_generation
from shapetrace.api.transformer.special_ids import end_ids, start_id
from shapetrace.errors import ShapetraceError
from shapetrace.text import Tokenizer, check_ids, tokenizer_for

if TYPE_CHECKING:
    from shapetrace.model import ModelConfig
    from shapetrace.report.generation.records import Generation
    from shapetrace.text.tokenizer_json import Choice


def generate(
    config: str,
    prompts: Sequence[str] = (),
    *,
    text_file: Path | None = None,
    settings: Sequence[str] = (),
    max_new_tokens: int = 64,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    stop: Sequence[str] = (),
    samples: int = 1,
    cache: bool = True,
    attention: str | None = None,
    device: str = "cpu",
    dtype: str = "auto",
    tokenizer: Choice = "auto",
    trace: bool = False,
    on_text: OnText | None = None,
) -> Generation:
    """Continue prompts, or write what belongs to each source.

    Args:
        config: A preset's name, a TOML or JSON file, or a Hugging Face directory, whose
            weights and tokenizer are then used.
        prompts: One or more texts.
        text_file: A UTF-8 file with one text, instead of `prompts`.
        settings: ``key=value`` changes to the configuration.
        max_new_tokens: The most tokens to make for each.
        temperature: What scores are divided by before one token is drawn.
        top_k: Draw from this many of the likeliest tokens.
        top_p: Draw from the fewest tokens that reach this probability; greedy when neither
            this nor the two before are given.
        seed: Of the draws, and of random weights.
        stop: Tokens after which a text ends; the model's own end is always one.
        samples: Texts to make from each prompt.
        cache: Whether keys and values are kept.
        attention: ``explicit`` or ``fused``; when None, explicit where it is traced.
        device: ``cpu``, ``cuda``, or ``meta`` for the shapes and costs of every pass without
            weights; which text is made, and how long it takes, is not known there.
        dtype: Of weights and activations; ``auto`` for that of trained weights, else float32.
        tokenizer: ``auto`` for the model's own, or ``bytes`` whatever it has.
        trace: Whether the run is traced.
        on_text: Told of new text as it is made: the number of the text, and the text.

    Raises:
        ShapetraceError: For anything in this that cannot be; says what, and what to do.

    Example:
        >>> from shapetrace import generate
        >>> made = generate("tiny-decoder", ["dog bites"], max_new_tokens=3)
        >>> len(made.samples[0].token_ids)
        3
    """
    check_run(device, dtype, seed)
    check_tokenizer(tokenizer)
    given = read_texts(prompts, text_file, "--prompt") or []
    chosen = choose_config(config, settings, attention or ("explicit" if trace else "fused"))
    folder = directory_of(config)
    words = tokenizer_for(folder, chosen.vocab_size, tokenizer)
    if chosen.kind == "encoder":
        raise ShapetraceError(
            f"{name_of(config)} is an encoder, which reads and does not write; "
            "generation needs a decoder or an encoder-decoder"
        )
    if not given:
        raise ShapetraceError("no prompt is given; give --prompt or --text-file")
    if not all(given):
        raise ShapetraceError("a prompt is empty; give at least one character")
    request = GenerationRequest(
        name=name_of(config),
        config=chosen,
        weights=folder,
        tokenizer=words,
        prompts=tuple(given),
        prompt_ids=tuple(prompt_ids(chosen, words, prompt) for prompt in given),
        stop_ids=frozenset([*(stop_id(words, token) for token in stop), *end_ids(chosen, words)]),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        samples=samples,
        start_id=start_id(chosen, words),
        cache=cache,
        device=device,
        dtype=dtype_for(dtype, folder),
        trace=trace,
    )
    with plainly():
        return run_generation(request, on_text)


def prompt_ids(config: ModelConfig, tokenizer: Tokenizer, prompt: str) -> tuple[int, ...]:
    """A prompt's tokens, with the token before them that the model was trained with.

    Raises:
        ShapetraceError: If an id is outside of the vocabulary.
    """
    ids = tokenizer.encode(prompt, special=config.kind == "encoder-decoder").ids
    whole = tokenizer.encode(prompt).ids
    if config.kind == "decoder" and whole[: len(whole) - len(ids)] + ids == whole:
        ids = whole  # what is put before a text belongs to it; what is put after would end it
    check_ids(ids, config.vocab_size)
    return ids


def stop_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token that is named by its text.

    Raises:
        ShapetraceError: If it is no single token.
    """
    known = tokenizer.id_of(token)
    if known is not None:
        return known
    ids = tokenizer.encode(token, special=False).ids if token else ()
    if len(ids) == 1:
        return ids[0]
    raise ShapetraceError(
        f"--stop {token!r} is no token of {tokenizer.name}"
        + (f": it is written with {len(ids)}" if ids else "")
        + "; give a single token"
    )
