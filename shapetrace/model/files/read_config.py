"""Configuration files: TOML, JSON, and Hugging Face's config.json."""

from __future__ import annotations

import tomllib
from pathlib import Path

from shapetrace.model.errors import ModelError
from shapetrace.model.files.huggingface import fields_from_huggingface
from shapetrace.model.files.json_file import Fields, config_text, read_json
from shapetrace.model.files.shards import has_weights, tensor_files


def read_config(path: Path) -> tuple[Fields, str]:
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


def _from_huggingface(values: Fields, where: str, directory: Path | None) -> Fields:
    """Our fields; BERT's configuration does not say which heads the weights have."""
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


def read_toml(path: Path) -> Fields:
    """The table in a TOML file; a broken one is a `ModelError` with the line."""
    text = config_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ModelError(f"{path} is not valid TOML: it is nested too deeply") from None
    except ValueError as error:  # broken TOML, or a number of thousands of digits
        end = f"at line {text.rstrip().count(chr(10)) + 1}, the end of the document"
        reason = str(error).replace("at end of document", end)
        raise ModelError(f"{path} is not valid TOML: {reason}") from None
