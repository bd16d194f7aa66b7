"""Configuration files: TOML, JSON, and Hugging Face's config.json."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from shapetrace.model.errors import ModelError

_MOST = 64 << 20
"""Characters of a configuration, or of the list of a model's weights."""

Values = dict[str, object]


def read_config(path: Path) -> tuple[Values, str]:
    """The fields in a configuration file, and what to call the file in an error.

    Args:
        path: A ``.toml`` or ``.json`` file, or a directory that holds a ``config.json``.

    Raises:
        ModelError: The file is missing or broken, or of an unknown kind.
    """
    directory = path if is_folder(path) else None
    if directory is not None:
        path = directory / "config.json"
        if not path.exists():
            raise ModelError(f"{path} does not exist: {directory} is no directory of a model")
    values = read_toml(path) if path.suffix == ".toml" else read_json(path)
    if "model_type" in values:
        values = _from_huggingface(values, str(path), directory)
    return values, str(path)


def _from_huggingface(values: Values, where: str, directory: Path | None) -> Values:
    """Our fields; BERT's configuration does not say which heads the weights have."""
    from shapetrace.model.checkpoints.huggingface import fields_from_huggingface  # noqa: PLC0415
    from shapetrace.model.checkpoints.shards import has_weights, tensor_files  # noqa: PLC0415

    fields = fields_from_huggingface(values, where)
    if values["model_type"] == "bert" and directory is not None and has_weights(directory):
        names = tensor_files(directory)
        fields["pooler"] = any("pooler.dense." in name for name in names)
        fields["head"] = "mlm" if any("cls.predictions." in name for name in names) else "none"
    return fields


def is_folder(path: Path) -> bool:
    """Whether a folder is there; a name that is too long for the system is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def read_toml(path: Path) -> Values:
    """The table in a TOML file; a broken one is a `ModelError` with the line."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ModelError(f"{path} is not valid TOML: it is nested too deeply") from None
    except ValueError as error:  # broken TOML, or a number of thousands of digits
        end = f"at line {text.rstrip().count(chr(10)) + 1}, the end of the document"
        reason = str(error).replace("at end of document", end)
        raise ModelError(f"{path} is not valid TOML: {reason}") from None


def read_json(path: Path) -> Values:
    """The object in a JSON file; a broken one is a `ModelError` with the line."""
    text = read_text(path)
    try:
        values = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"{path} is not valid JSON: {error.msg} (at line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise ModelError(f"{path} is not valid JSON: it is nested too deeply") from None
    except ValueError as error:  # a key twice, or a number of thousands of digits
        raise ModelError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise ModelError(f"{path} holds JSON of another kind; it must hold an object")
    return values


def _object(pairs: list[tuple[str, object]]) -> Values:
    """A JSON object; of a key that stands twice, nobody can say which value is meant."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return values


def read_text(path: Path) -> str:
    """The text of a file, without a byte order mark; an unreadable one is a `ModelError`."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST + 1)
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name with a null character
        raise ModelError(f"{path} cannot be read: {error}") from None
    if len(text) > _MOST:  # a device such as /dev/zero never ends
        raise ModelError(f"{path} is no configuration: it holds more than {_MOST:,} characters")
    return text
