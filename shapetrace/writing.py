"""Write files that people name: whole or not at all, as readable as the ones they replace."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path


def write_whole(path: Path, content: bytes, *, like: Path | None = None) -> None:
    """Put content where a path is, in one step that survives a crash.

    The mode and the owner of a file that is replaced are kept, and a link stays a link. A
    device or a pipe is written to as it is.

    Args:
        path: The file.
        content: All that it is to hold.
        like: Another file whose mode and owner it gets; None for those it had, or, where it
            is new, for those of any new file.

    Raises:
        OSError: If that cannot be; then what was there is there still.
    """
    place = resolved(path)
    if _is_special(place):
        with place.open("wb") as file:
            file.write(content)
        return
    with _staged(place, content, place if like is None else resolved(like)) as temporary:
        temporary.replace(place)
    _sync_folder(place.parent)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Replace several regular files, all of them or none.

    Args:
        contents: What each file is to hold.

    Raises:
        OSError: As `write_whole`.
    """
    with contextlib.ExitStack() as stack:
        moves = []
        for path, content in contents.items():
            place = resolved(path)
            moves.append((stack.enter_context(_staged(place, content, place)), place))
        for temporary, place in moves:  # all are on the disk by now: nothing is left to fail
            temporary.replace(place)
    for folder in {place.parent for _, place in moves}:
        _sync_folder(folder)


def check_place(path: Path) -> None:
    """Find out whether a file can be written, before a long run and not after it.

    Raises:
        OSError: With what is in the way.
    """
    place = resolved(path)
    if _is_special(place):
        return
    with _staged(place, b"", place):
        pass


def resolved(path: Path) -> Path:
    """The file that a path leads to, over all links.

    Raises:
        OSError: For a name that no file can have, links in a circle too.
    """
    try:
        place = path.resolve()
        place.exists()  # a name that is too long
    except (RuntimeError, ValueError) as error:  # a circle of links; a null character
        reason = "its links lead in a circle" if isinstance(error, RuntimeError) else str(error)
        raise OSError(errno.EINVAL, reason) from error
    return place


def _is_special(place: Path) -> bool:
    """Whether it is a device or a pipe: what takes bytes, and no other file in its place."""
    return place.exists() and not place.is_file() and not place.is_dir()


@contextlib.contextmanager
def _staged(place: Path, content: bytes, like: Path) -> Iterator[Path]:
    """The content on the disk beside the place, gone at the end unless it was moved."""
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    kept = like.stat() if like.exists() else None
    # A short name of its own: the file's with something added could be longer than is allowed.
    temporary = place.with_name(f".shapetrace-{os.getpid()}-{os.urandom(4).hex()}")
    # The system takes the umask off a new file's mode; what was private is private all along.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = os.open(temporary, flags, 0o666 if kept is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if kept is not None:
                _pass_on(kept, file.fileno())
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _pass_on(kept: os.stat_result, handle: int) -> None:
    """Give a new file the owner and the mode of an old one; the owner first: it resets bits."""
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (kept.st_uid, kept.st_gid):
        try:
            os.fchown(handle, kept.st_uid, kept.st_gid)
        except PermissionError as error:
            raise PermissionError(errno.EPERM, "it belongs to somebody else") from error
    os.fchmod(handle, stat.S_IMODE(kept.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make a rename last; where folders cannot be synced (Windows), it is left to the system."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
