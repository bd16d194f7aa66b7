"""One pass of a Transformer, from what the user says to a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.api.transformer.choices import (
    check_run,
    check_tokenizer,
    choose_config,
    directory_of,
    dtype_for,
    name_of,
)
from shapetrace.api.transformer.inputs import random_inputs, read_texts, text_inputs
from shapetrace.api.transformer.requests import PassRequest
from shapetrace.api.transformer.runners import run_pass
from shapetrace.errors import ShapetraceError
from shapetrace.text import tokenizer_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from shapetrace.report.traced import Traced
    from shapetrace.text.tokenizer_json import Choice


def _silence(_text: str) -> None:
    """What is going on is nobody's business."""


def forward(
    config: str,
    *,
    settings: Sequence[str] = (),
    texts: Sequence[str] | None = None,
    text_file: Path | None = None,
    batch: int | None = None,
    seq: int | None = None,
    target_texts: Sequence[str] | None = None,
    attention: str | None = None,
    device: str = "cpu",
    dtype: str = "auto",
    tokenizer: Choice = "auto",
    seed: int = 0,
    check: bool = True,
    backward: bool = False,
    progress: Callable[[str], None] = _silence,
) -> Traced:
    """Run one forward pass of a Transformer and return its trace.

    Args:
        config: A preset's name, a TOML or JSON file, or a Hugging Face directory, whose
            weights and tokenizer are then used.
        settings: ``key=value`` changes to the configuration.
        texts: One or more texts; shorter ones are padded.
        text_file: A UTF-8 file with one text, instead of `texts`.
        batch: Texts of random ids, where no text is given; 2 when None.
        seq: Random ids in each; 16 when None.
        target_texts: What an encoder-decoder is to write, one per text.
        attention: ``explicit``, which makes the scores, or ``fused``; explicit when None.
        device: ``cpu``, ``cuda``, or ``meta`` for sizes and costs without weights.
        dtype: Of weights and activations; ``auto`` for that of trained weights, else float32.
        tokenizer: ``auto`` for the model's own, or ``bytes`` whatever it has.
        seed: Of random weights and ids.
        check: Whether declared annotations are checked.
        backward: Whether the loss is worked out too, and every parameter's gradient.
        progress: Is told what is going on.

    Raises:
        ShapetraceError: For anything in this that cannot be; says what, and what to do.

    Example:
        >>> import shapetrace
        >>> trace = shapetrace.forward("tiny-decoder", batch=2, seq=5)
        >>> [row.dims for row in trace.rows() if row.name == "scores"][0]
        'B h n n'
    """
    check_run(device, dtype, seed)
    check_tokenizer(tokenizer)
    chosen = choose_config(config, settings, attention)
    folder = directory_of(config)
    given = read_texts(texts, text_file)
    sized = batch is not None or seq is not None
    if given is None:
        inputs = random_inputs(chosen, batch, seq, target_texts, seed)
    else:
        if sized:
            raise ShapetraceError(
                "--batch and --seq are for random ids; leave them out where a text is given"
            )
        words = tokenizer_for(folder, chosen.vocab_size, tokenizer)
        inputs = text_inputs(chosen, words, given, target_texts)
    request = PassRequest(
        name=name_of(config),
        config=chosen,
        weights=folder,
        device=device,
        dtype=dtype_for(dtype, folder),
        seed=seed,
        check=check,
        backward=backward,
    )
    return run_pass(request, inputs, progress)
