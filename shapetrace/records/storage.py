"""A trace on disk: one gzip'd JSON file, by version, whole or not at all.

The file is ``{"format": "shapetrace trace", "trace": {...}}`` (`zcat` shows it), with
`FORMAT_VERSION` as the trace's ``format_version``. Equal traces make equal bytes.

The story of each version:

* 1: the first. Tables as columns, repeated values pooled (see `codec`).

A new field with a default keeps the version: older files load with the default. Anything
else (a field renamed, removed, or of another meaning) raises `FORMAT_VERSION` and adds the
step from the version before to `MIGRATIONS`, with its line here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from shapetrace.errors import ShapetraceError
from shapetrace.reading import read_whole
from shapetrace.records.codec import decode_record, encode_record
from shapetrace.records.coders import DecodeError
from shapetrace.records.references import check_references
from shapetrace.records.trace import FORMAT_VERSION, Trace
from shapetrace.writing import resolved, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMAT = "shapetrace trace"

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""For each older version, the step that turns its encoded trace into the next version's."""

_GZIP = 31
"""zlib's window bits for a gzip container; its header then carries no time."""

_LEVEL = 3
_MOST_MEBIBYTES = 512
"""Three times as fast as zlib's default of 6 on a trace's columns, and no larger."""


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace, whole or not at all: an interrupted save leaves the old file as it was.

    Args:
        trace: What to save.
        path: Where; an existing file is replaced.

    Raises:
        ShapetraceError: If the place cannot be written.
    """
    try:
        target = resolved(Path(path))
        if target.exists() and not (target.is_file() or target.is_dir()):
            _refuse_target(path, "it is not a regular file")
        write_whole(target, dumps(trace))
    except OSError as error:
        _refuse_target(path, error.strerror or str(error))


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a trace that this version or an older one saved.

    Args:
        path: The file.

    Returns:
        The trace, in this version's records.

    Raises:
        ShapetraceError: If the file cannot be read, is no trace, is cut off or damaged, or
            was written by a newer version.
    """
    try:
        data = read_whole(Path(path), _MOST_MEBIBYTES)
    except OSError as error:
        raise ShapetraceError(
            f"cannot read trace {os.fspath(path)}: {error.strerror or error}; give a file written with --save"
        ) from error
    return loads(data, os.fspath(path))


def dumps(trace: Trace) -> bytes:
    """The bytes of a saved trace; equal traces give equal bytes."""
    body = {"format": FORMAT, "trace": encode_record(trace) | {"format_version": FORMAT_VERSION}}
    text = json.dumps(body, separators=(",", ":"))
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(text.encode("ascii")) + packer.flush()


def loads(data: bytes, source: str = "the data") -> Trace:
    """The trace in the bytes of a saved one.

    Args:
        data: The bytes.
        source: Where they come from, for errors.

    Raises:
        ShapetraceError: As `load`.
    """
    encoded = _unpack(data, source)
    version = encoded.get("format_version")
    if type(version) is not int:
        _refuse_damaged(source, "it has no format version")
    if version > FORMAT_VERSION:
        raise ShapetraceError(
            f"{source} is a trace of format {version}, newer than this shapetrace reads ({FORMAT_VERSION}); "
            "upgrade shapetrace, or trace again with this one"
        )
    try:
        with _collector_paused():
            trace = decode_record(
                Trace, migrate(encoded, version) | {"format_version": FORMAT_VERSION}
            )
            check_references(trace)
            return trace
    except DecodeError as error:
        _refuse_damaged(source, str(error))


def migrate(encoded: dict[str, Any], version: int) -> dict[str, Any]:
    """An older version's encoded trace, brought to this version step by step."""
    for step in range(version, FORMAT_VERSION):
        if step not in MIGRATIONS:
            raise DecodeError(f"no shapetrace ever wrote format {step}")
        encoded = MIGRATIONS[step](encoded)
    return encoded


def _unpack(data: bytes, source: str) -> dict[str, Any]:
    """The encoded trace inside a file's bytes."""
    if not data:
        raise ShapetraceError(f"{source} is empty; trace again with --save")
    if not data.startswith(b"\x1f\x8b"[: len(data)]):
        _refuse_foreign(source)
    unpacker = zlib.decompressobj(_GZIP)
    try:
        text = unpacker.decompress(data)
    except zlib.error as error:
        _refuse_damaged(source, str(error))
    if not unpacker.eof:
        _refuse_damaged(source, "it is cut off")
    if unpacker.unused_data:
        _refuse_damaged(source, f"{len(unpacker.unused_data)} bytes follow its end")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        _refuse_foreign(source)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        _refuse_foreign(source)
    if not isinstance(body.get("trace"), dict):
        _refuse_damaged(source, "it holds no trace")
    return dict(body["trace"])


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Records hold no cycles; without this, half of a load goes into looking for some."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _refuse_target(path: str | os.PathLike[str], reason: str) -> NoReturn:
    raise ShapetraceError(
        f"cannot save the trace to {os.fspath(path)}: {reason}; choose another file"
    )


def _refuse_foreign(source: str) -> NoReturn:
    raise ShapetraceError(f"{source} is not a saved trace; give a file written with --save")


def _refuse_damaged(source: str, reason: str) -> NoReturn:
    raise ShapetraceError(f"{source} is a damaged trace: {reason}; trace again with --save")
