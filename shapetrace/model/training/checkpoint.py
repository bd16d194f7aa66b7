"""Checkpoints: a directory in Hugging Face's layout, replaced as a whole or not at all.

The writing is this file's own: the model can be lifted out whole, so it imports nothing else of
the package, and what is replaced in one step here is a folder, not a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from shapetrace.model.errors import ModelError
from shapetrace.model.files.json_file import read_json
from shapetrace.model.layers.stack import Transformer

STATE = "training.pt"
RECORD = "training.json"


def save_checkpoint(
    path: str | Path,
    model: Transformer,
    *,
    files: Mapping[str, bytes] | None = None,
    record: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
) -> None:
    """Write a directory that `from_pretrained` reads.

    Everything is written beside the old checkpoint and put in its place at the end: until
    then, and when the disk is full, the old one stays as it was.

    Args:
        path: The directory; a checkpoint in it is replaced.
        model: Its configuration and weights are saved.
        files: More files by name: the tokenizer's.
        record: What is to be known of the training: settings, losses.
        state: What a resumed training needs; left out where none is to be resumed.

    Raises:
        ModelError: The directory is there and no checkpoint, or cannot be written.
    """
    target = Path(path).resolve()
    check_checkpoint_place(target)
    new, old = _beside(target, "new"), _beside(target, "old")
    try:
        _recover(target)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        _write(new, model, files or {}, record, state)
        if target.exists():
            _pass_on(target, new)
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        new.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except Exception as error:  # safetensors has errors of its own for a full disk
        _undo(target)
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(
            f"cannot save a checkpoint to {target}: {reason}; what was saved before is intact"
        ) from error
    except BaseException:
        _undo(target)
        raise


def check_checkpoint_place(path: str | Path) -> None:
    """Refuse a place for checkpoints that holds something else.

    Raises:
        ModelError: It is a file, a directory that is neither empty nor a checkpoint, or
            somewhere that cannot be written to.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise ModelError(f"{target} is a file; a checkpoint is a directory")
    if target.is_dir() and any(target.iterdir()) and not (target / "config.json").is_file():
        raise ModelError(
            f"{target} holds something that is no checkpoint; choose another directory"
        )
    above = target.resolve().parent
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK) or not _takes(above):
        raise ModelError(
            f"cannot save a checkpoint to {target}: {above} cannot be written to; "
            "choose another directory"
        )


def load_state(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a training left to be resumed: its record and its state.

    Raises:
        ModelError: The directory is no checkpoint, or of a training that cannot be resumed.
    """
    directory = Path(path)
    _recover(directory)
    for name in ("config.json", RECORD, STATE):
        if not (directory / name).is_file():
            raise ModelError(
                f"{directory} is no checkpoint of a training that can be resumed: it has no {name}"
            )
    try:
        state = torch.load(directory / STATE, weights_only=True, map_location="cpu")
    except Exception as error:
        raise ModelError(f"{directory / STATE} is damaged or cut off") from error
    record = dict(read_json(directory / RECORD))
    if not _is_state(state):
        raise ModelError(f"{directory / STATE} is no state of a training")
    if not _is_record(record):
        raise ModelError(f"{directory / RECORD} is no record of a training")
    return record, state


def _is_state(state: object) -> bool:
    return (
        isinstance(state, dict)
        and isinstance(step := state.get("step"), int)
        and step >= 0
        and isinstance(state.get("optimizer"), dict)
    )


def _is_record(record: Mapping[str, Any]) -> bool:
    """Whether the parts that a resumed training reads, where they are there, are of their kind."""
    losses, held_out = record.get("losses", []), record.get("held_out", [])
    return (
        isinstance(record.get("training", {}), dict)
        and isinstance(losses, list)
        and all(isinstance(loss, int | float) for loss in losses)
        and isinstance(held_out, list)
        and all(isinstance(pair, list) and len(pair) == 2 for pair in held_out)  # noqa: PLR2004
    )


def _write(
    directory: Path,
    model: Transformer,
    files: Mapping[str, bytes],
    record: Mapping[str, Any] | None,
    state: Mapping[str, Any] | None,
) -> None:
    config = {"model_type": "shapetrace", **model.config.to_dict()}
    _write_json(directory / "config.json", config)
    tensors = {name: tensor.detach().contiguous() for name, tensor in model.named_parameters()}
    weights = directory / "model.safetensors"
    save_file(tensors, weights, metadata={"format": "pt"})
    # The library lets the owner alone read it; who may read the rest may read the weights.
    weights.chmod((directory / "config.json").stat().st_mode & 0o777)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    if record is not None:
        _write_json(directory / RECORD, record)
    if state is not None:
        torch.save(dict(state), directory / STATE)
    for file in directory.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())


def _pass_on(old: Path, new: Path) -> None:
    """Give a folder and its files the owners and the modes of those that they replace."""
    for path in (new, *new.iterdir()):
        before = old if path == new else old / path.name
        if before.exists():
            now, kept = path.stat(), before.stat()
            if (now.st_uid, now.st_gid) != (kept.st_uid, kept.st_gid):
                os.chown(path, kept.st_uid, kept.st_gid)
            path.chmod(stat.S_IMODE(kept.st_mode))  # after the owner, whose change resets bits


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _beside(target: Path, word: str) -> Path:
    return target.with_name(f".{target.name}.{word}")


def _takes(directory: Path) -> bool:
    """Whether a directory can be made in it; permissions alone do not tell (/proc, read-only)."""
    try:
        with tempfile.TemporaryDirectory(dir=directory, prefix=".shapetrace-"):
            return True
    except OSError:
        return False


def _undo(target: Path) -> None:
    """Take away what was being written, and have the old checkpoint where it was."""
    with contextlib.suppress(OSError):
        _recover(target)
    shutil.rmtree(_beside(target, "new"), ignore_errors=True)


def _recover(target: Path) -> None:
    """Put back the old checkpoint where a crash came between moving it away and the new one in."""
    old = _beside(target, "old")
    if not target.exists() and old.is_dir():
        old.rename(target)
