"""Train a Transformer: from what the user says, and a file of text, to a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from shapetrace.api.transformer.choices import (
    check_run,
    check_tokenizer,
    choose_config,
    directory_of,
    name_of,
    plainly,
)
from shapetrace.api.transformer.requests import TrainingRequest
from shapetrace.api.transformer.runners import run_training
from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelConfig
from shapetrace.reading import read_text
from shapetrace.text import tokenizer_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shapetrace.api.transformer.results import Trained
    from shapetrace.model.training import Progress
    from shapetrace.model.training.settings import TrainingOptions
    from shapetrace.text import Tokenizer
    from shapetrace.text.tokenizer_json import Choice

_MOST_MEBIBYTES = 512
"""Of a data file; its tokens are held in memory."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def _silence(_: object) -> None:
    """Nobody wants to know."""


def train(
    config: str,
    data: Path | str,
    *,
    settings: Sequence[str] = (),
    out: Path | None = None,
    resume: bool = False,
    vocab: int | None = None,
    attention: str | None = "fused",
    tokenizer: Choice = "auto",
    device: str = "cpu",
    trace: bool = True,
    keep_state: bool = True,
    on_step: Callable[[Progress], None] = _silence,
    training: Mapping[str, Any] | None = None,
    **options: Unpack[TrainingOptions],
) -> Trained:
    """Train a Transformer on a text, or on pairs of texts.

    Args:
        config: A preset's name, a TOML or JSON file, or a Hugging Face directory, whose
            weights and tokenizer are then the beginning.
        data: A UTF-8 file: a text, or for an encoder-decoder a source, a tab and a target
            on each line.
        settings: ``key=value`` changes to the configuration.
        out: The directory for checkpoints; None for none.
        resume: Whether to go on from the checkpoint in `out`.
        vocab: Tokens of a BPE tokenizer to learn from the data first; None for the
            tokenizer that lies with the configuration, else bytes.
        attention: ``explicit`` or ``fused``; None for the checkpoint's or the configuration's.
        tokenizer: ``auto`` for the model's own, or ``bytes`` whatever it has.
        device: ``cpu``, ``cuda``, or ``meta`` for the shapes and costs of one step without
            weights; what it loses is not known there.
        trace: Whether the first step is traced.
        keep_state: Whether the last checkpoint can be resumed.
        on_step: Told of each step.
        training: Fields of `shapetrace.model.training.TrainingSettings`, as one mapping.
        options: The same fields by name: ``steps=100``, ``batch=4``, ``seed=1``, ...

    Raises:
        ShapetraceError: For anything in this that cannot be; says what, and what to do.
    """
    how = {**(training or {}), **options}
    check_run(device, "float32", how.get("seed", 0))
    check_tokenizer(tokenizer)
    _check_places(device, out, resume=resume, trace=trace)
    text = read_data(Path(data))
    folder = directory_of(config)
    out = None if out is None else Path(out)
    spoken = out if resume and out is not None and out.is_dir() else folder
    if vocab is not None and tokenizer != "auto":
        raise ShapetraceError(
            "--vocab learns a tokenizer, so --tokenizer must be auto; leave out one"
        )
    files = _tokenizer_files(spoken) if tokenizer == "auto" else {}
    changes = list(settings)
    if vocab is not None:
        changes.append(f"vocab_size={vocab}")
    goes_on = out if resume else None
    chosen = choose_config(config, changes, attention or _attention_of(goes_on))
    words: Tokenizer
    if vocab is not None:
        from shapetrace.text.training import train_tokenizer  # noqa: PLC0415 - needs tokenizers

        words, made = train_tokenizer([text], vocab)
        files = {"tokenizer.json": made}
    else:
        words = tokenizer_for(spoken, chosen.vocab_size, tokenizer)
    request = TrainingRequest(
        name=name_of(config),
        config=chosen,
        weights=folder,
        tokenizer=words,
        text=text,
        data=Path(data),
        settings=how,
        output=out,
        resume=resume,
        files=files,
        device=device,
        trace=trace,
        keep_state=keep_state,
    )
    return run_training(request, on_step)


def _check_places(device: str, out: Path | None, *, resume: bool, trace: bool) -> None:
    if resume and out is None:
        raise ShapetraceError("--resume needs --out, the directory with the checkpoint")
    if device == "meta" and not trace:
        raise ShapetraceError("--device meta is for the trace; leave out --no-trace")
    if device == "meta" and out is not None:
        raise ShapetraceError(
            "--device meta has no values, so there is nothing to save; leave out --out"
        )


def _attention_of(checkpoint: Path | None) -> str | None:
    """How the model of a checkpoint attends, if there is one."""
    if checkpoint is None or not (checkpoint / "config.json").is_file():
        return None
    with plainly():
        return ModelConfig.from_file(checkpoint).attention


def read_data(file: Path) -> str:
    """The text of a data file.

    Raises:
        ShapetraceError: If it is missing, empty, or not UTF-8.
    """
    try:
        text = read_text(file, _MOST_MEBIBYTES)
    except OSError as error:
        raise ShapetraceError(f"cannot read data file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ShapetraceError(f"data file {file} is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        raise ShapetraceError(f"data file {file} is empty; give a text to learn from")
    return text


def _tokenizer_files(folder: Path | None) -> dict[str, bytes]:
    if folder is None:
        return {}
    places = (folder / name for name in _TOKENIZER_FILES)
    return {place.name: place.read_bytes() for place in places if place.is_file()}
