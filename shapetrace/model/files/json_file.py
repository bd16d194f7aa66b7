"""The text and the JSON object in a file; a file that has none is one clear line."""

from __future__ import annotations

import json
from pathlib import Path

from shapetrace.model.errors import ModelError

_MOST = 64 << 20
"""Characters of a configuration, or of the list of a model's weights."""

Fields = dict[str, object]
"""The fields of a file by name, with what stands there."""


def read_json(path: Path) -> Fields:
    """The object in a JSON file; a broken one is a `ModelError` with the line."""
    text = config_text(path)
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


def _object(pairs: list[tuple[str, object]]) -> Fields:
    """A JSON object; of a key that stands twice, nobody can say which value is meant."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return values


def config_text(path: Path) -> str:
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
