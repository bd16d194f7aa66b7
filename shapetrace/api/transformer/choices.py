"""Values that several commands take, checked in one place with one message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shapetrace.api.transformer.configuration import plainly
from shapetrace.api.transformer.memory import ITEM_BYTES
from shapetrace.errors import ShapetraceError, did_you_mean, with_article
from shapetrace.model.files.shards import has_weights, weights_dtype
from shapetrace.model.seeds import check_seed
from shapetrace.text.tokenizer_json import CHOICES

DEVICES = ("cpu", "cuda", "meta")


def check_run(device: str, dtype: str, seed: int) -> None:
    """Refuse a device, a dtype or a seed that there is not.

    Raises:
        ShapetraceError: With the nearest that there is, or the range.
    """
    _check_choice("device", device, DEVICES)
    _check_choice("dtype", dtype, ("auto", *ITEM_BYTES))
    with plainly():
        check_seed(seed)


def dtype_for(dtype: str, folder: Path | None) -> str:
    """The dtype that is meant by ``auto``: the one that trained weights are kept in.

    Args:
        dtype: As it was given.
        folder: Where the weights lie; None where there are none, which is float32.

    Raises:
        ShapetraceError: If the weights cannot be read.
    """
    if dtype != "auto":
        return dtype
    with plainly():
        kept = weights_dtype(folder) if folder is not None and has_weights(folder) else None
    return kept or "float32"


def check_tokenizer(choice: str) -> None:
    """Refuse a choice of a tokenizer that there is not.

    Raises:
        ShapetraceError: With the nearest that there is.
    """
    _check_choice("tokenizer", choice, CHOICES)


def check_texts(name: str, texts: object) -> None:
    """Refuse what is no list of texts; a bare one would be read letter by letter.

    Raises:
        ShapetraceError: Naming the argument.
    """
    if isinstance(texts, str):
        raise ShapetraceError(f"{name}={texts!r} is one text; give a list of texts: [{texts!r}]")
    if texts is None or (
        isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
    ):
        return
    raise ShapetraceError(
        f"{name} is {with_article(type(texts).__name__)}, {texts!r}; give a list of texts"
    )


def _check_choice(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ShapetraceError(f"unknown {what} {value!r}: {did_you_mean(str(value), known)}")
