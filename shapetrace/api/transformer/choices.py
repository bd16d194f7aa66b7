"""Which model is meant, and values that several commands take, checked with one message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from shapetrace.api.transformer.memory import ITEM_BYTES
from shapetrace.errors import ShapetraceError, did_you_mean, with_article
from shapetrace.model import ModelConfig, ModelError, presets
from shapetrace.model.files.shards import has_weights, weights_dtype
from shapetrace.model.settings import check_seed
from shapetrace.text.tokenizer_json import CHOICES

DEVICES = ("cpu", "cuda", "meta")


@contextmanager
def plainly() -> Iterator[None]:
    """Turn the model's own errors, which are one clear line, into ours."""
    try:
        yield
    except ModelError as error:
        raise ShapetraceError(str(error)) from error


def choose_config(
    name: str, settings: Sequence[str] = (), attention: str | None = None
) -> ModelConfig:
    """The configuration of a preset, a TOML or JSON file, or a Hugging Face directory.

    Args:
        name: A preset's name, or a path. A preset wins over a file of the same name.
        settings: ``key=value`` changes.
        attention: ``explicit`` or ``fused``; when None, ``explicit`` unless `settings` say
            otherwise, so that the scores stand in the table.

    Raises:
        ShapetraceError: No such preset or file, a broken file, or a wrong field or value.
    """
    if not isinstance(name, str | PathLike):
        raise ShapetraceError(
            f"config={name!r} is no name; give a preset, a file or a directory (a model of your "
            "own is for shapetrace.trace)"
        )
    name = str(name)
    if not name:
        raise ShapetraceError("--config is empty; give a preset, a file or a directory")
    changes = dict(_setting(text) for text in settings)
    if attention is not None:
        changes["attention"] = attention
    changes.setdefault("attention", "explicit")
    with plainly():
        if name in presets() or not _is_path(name):
            found = ModelConfig.from_preset(name)
        else:
            found = ModelConfig.from_file(name)
        return found.replaced(changes)


def _is_path(name: str) -> bool:
    path = Path(name)
    return _exists(path) or path.suffix in {".toml", ".json"} or "/" in name or len(path.parts) > 1


def _exists(path: Path) -> bool:
    """Whether it is there; a name that is too long to be anywhere is not."""
    try:
        return path.exists()
    except OSError:
        return False


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ShapetraceError(f"--set {text!r} is not of the form key=value, such as h=4")
    return key.strip(), value.strip()


def directory_of(name: str) -> Path | None:
    """The Hugging Face directory that is meant, where there is one."""
    path = Path(name)
    if str(name) in presets():
        return None
    if _exists(path) and path.is_dir():
        return path
    return path.parent if path.name == "config.json" and path.is_file() else None


def name_of(name: str) -> str:
    """What to call the model in a report: the preset, or the last part of the path."""
    return name if name in presets() else Path(name).resolve().name


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
