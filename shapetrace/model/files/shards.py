"""Which tensors a model's directory holds, and in which safetensors file each lies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapetrace.model.errors import ModelError
from shapetrace.model.files.json_file import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_FLOATS = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Torch's names of the dtypes that safetensors writes and a model can run in."""


def tensor_files(directory: Path) -> dict[str, Path]:
    """The file of each tensor, by the tensor's name.

    Raises:
        ModelError: There are no weights, or a file is missing or cut off.
    """
    if (directory / INDEX).is_file():
        return _indexed(directory)
    if (directory / SINGLE).is_file():
        path = directory / SINGLE
        return dict.fromkeys(tensor_names(path), path)
    raise ModelError(f"no weights in {directory}: expected {SINGLE} or {INDEX}")


def has_weights(directory: Path) -> bool:
    """Whether the directory holds safetensors weights."""
    return any((directory / name).is_file() for name in (SINGLE, INDEX))


def tensor_names(path: Path) -> list[str]:
    """The names of the tensors in one safetensors file."""
    with opened(path, framework="numpy") as file:
        return list(file.keys())


def weights_dtype(directory: Path) -> str | None:
    """The dtype that most numbers of a directory's weights have, in torch's name.

    Told from the files' headers; None where no tensor is in floating point.

    Raises:
        ModelError: As `tensor_files`.
    """
    counts: Counter[str] = Counter()
    for path in sorted(set(tensor_files(directory).values())):
        with opened(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - no mapping: the file is not iterable
                part = file.get_slice(name)
                counts[part.get_dtype()] += math.prod(part.get_shape())
    known = [name for name, _ in counts.most_common() if name in _FLOATS]
    return _FLOATS[known[0]] if known else None


@contextmanager
def opened(path: Path, framework: str = "pt", device: str = "cpu") -> Iterator[Any]:
    """A safetensors file, open for reading; a damaged one is a `ModelError`."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - only weights need it

    try:
        with safe_open(str(path), framework=framework, device=device) as file:
            yield file
    except SafetensorError as error:
        raise ModelError(f"{path} is damaged or cut off: {error}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error}") from None


def _indexed(directory: Path) -> dict[str, Path]:
    path = directory / INDEX
    index: Mapping[str, object] = read_json(path)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise ModelError(f"{path} has no `weight_map`")
    files = {str(name): directory / str(file) for name, file in weight_map.items()}
    for file in sorted(set(files.values())):
        if not file.is_file():
            raise ModelError(f"{file} is missing; {path.name} names it")
        held = set(tensor_names(file))
        for name, place in files.items():
            if place == file and name not in held:
                raise ModelError(f"tensor {name!r} is not in {file}, where {path.name} puts it")
    return files
