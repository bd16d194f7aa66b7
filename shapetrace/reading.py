"""Read files that people name: all of one, but never without end."""

from __future__ import annotations

import errno
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MEBIBYTE = 1 << 20


def read_whole(path: Path, mebibytes: int) -> bytes:
    """All of a file, if it ends within a size that makes sense for it.

    A device such as ``/dev/zero``, or a pipe that somebody keeps filling, never ends, and
    reading it until the memory is full takes the machine along.

    Args:
        path: The file, device or pipe.
        mebibytes: The most that it may hold.

    Raises:
        OSError: If it cannot be read, or holds more.
    """
    parts, left = [], mebibytes * MEBIBYTE
    with path.open("rb") as file:
        while part := file.read(min(MEBIBYTE, left + 1)):
            left -= len(part)
            if left < 0:
                raise OSError(errno.EFBIG, f"it holds more than {mebibytes} MiB")
            parts.append(part)
    return b"".join(parts)


def read_text(path: Path, mebibytes: int) -> str:
    """The same as text: UTF-8, a byte order mark left out, every line ended by one newline.

    Raises:
        OSError: As `read_whole`.
        UnicodeDecodeError: If it is not UTF-8.
    """
    return io.StringIO(read_whole(path, mebibytes).decode("utf-8-sig"), newline=None).getvalue()
