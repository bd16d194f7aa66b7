"""One pass of a Transformer, from what the user says to a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.api.transformer.choices import check_run
from shapetrace.api.transformer.configuration import choose_config, directory_of, name_of
from shapetrace.api.transformer.inputs import random_inputs, read_texts, text_inputs
from shapetrace.api.transformer.requests import PassRequest
from shapetrace.api.transformer.runners import run_pass
from shapetrace.errors import ShapetraceError
from shapetrace.text import tokenizer_for
from shapetrace.text.bytelevel import BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from shapetrace.api.transformer.inputs import Inputs
    from shapetrace.model import ModelConfig
    from shapetrace.report.traced import Traced

AS_BYTES = "the model's folder has no tokenizer.json: the text is read as bytes"
"""Said where trained weights get ids that they were not trained on."""


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
    dtype: str = "float32",
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
        dtype: Of weights and activations.
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
    chosen = choose_config(config, settings, attention)
    folder = directory_of(config)
    given = read_texts(texts, text_file)
    sized = batch is not None or seq is not None
    if given is None:
        inputs = random_inputs(chosen, batch, seq, target_texts, seed)
    else:
        inputs = _from_texts(chosen, folder, given, target_texts, sized=sized)
    request = PassRequest(
        name=name_of(config),
        config=chosen,
        weights=folder,
        device=device,
        dtype=dtype,
        seed=seed,
        check=check,
        backward=backward,
    )
    return run_pass(request, inputs, progress)


def _from_texts(
    config: ModelConfig,
    folder: Path | None,
    texts: Sequence[str],
    targets: Sequence[str] | None,
    *,
    sized: bool,
) -> Inputs:
    if sized:
        raise ShapetraceError(
            "--batch and --seq are for random ids; leave them out where a text is given"
        )
    tokenizer = tokenizer_for(folder, config.vocab_size)
    inputs = text_inputs(config, tokenizer, texts, targets)
    if folder is not None and tokenizer.name == "byte-level" and config.vocab_size != BYTES:
        return replace(inputs, notes=(*inputs.notes, AS_BYTES))
    return inputs
