"""Values that several commands take, checked in one place with one message."""

from __future__ import annotations

from collections.abc import Sequence

from shapetrace.api.transformer.configuration import plainly
from shapetrace.api.transformer.memory import ITEM_BYTES
from shapetrace.errors import ShapetraceError, did_you_mean, with_article
from shapetrace.model.seeds import check_seed

DEVICES = ("cpu", "cuda", "meta")


def check_run(device: str, dtype: str, seed: int) -> None:
    """Refuse a device, a dtype or a seed that there is not.

    Raises:
        ShapetraceError: With the nearest that there is, or the range.
    """
    _check_choice("device", device, DEVICES)
    _check_choice("dtype", dtype, tuple(ITEM_BYTES))
    with plainly():
        check_seed(seed)


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
