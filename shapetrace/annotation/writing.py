"""New source into files: checked first, whole or not at all, the old file kept beside."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError
from shapetrace.installed import is_installed
from shapetrace.writing import check_place, write_all, write_whole

if TYPE_CHECKING:
    from shapetrace.annotation.plan.plans import Rewritten


def write_in_place(files: Sequence[Rewritten], *, force: bool = False) -> list[Path]:
    """Replace files by their annotated source; each old file stays beside it as ``.bak``.

    Args:
        files: What to write; files that did not change are left alone.
        force: Whether installed packages and files with uncommitted changes may be written.

    Returns:
        The files that were written.

    Raises:
        ShapetraceError: If any file may not or can't be written; then none is.
    """
    changed = [file for file in files if file.changed]
    for file in changed:
        _check(file, force=force)
    backups: list[Path] = []
    try:
        for file in changed:
            backups.append(_backup(Path(file.file)))
            write_whole(backups[-1], file.old, like=Path(file.file))
        write_all({Path(file.file): file.new for file in changed})
    except BaseException as error:
        for backup in backups:
            backup.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        names = ", ".join(file.file for file in changed)
        reason = error.strerror or str(error)
        raise ShapetraceError(f"cannot write {names}: {reason}; nothing was changed") from error
    return [Path(file.file) for file in changed]


def write_copies(files: Sequence[Rewritten], folder: Path, root: Path) -> list[Path]:
    """Write annotated source into another folder, at the same places below it.

    Args:
        files: What to write.
        folder: Where; made if it is not there.
        root: The folder that the files' places are relative to.

    Raises:
        ShapetraceError: If that can't be written.
    """
    written = []
    for file in files:
        if file.changed:
            target = folder / _below(Path(file.file), root)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_whole(target, file.new)
            except OSError as error:
                raise ShapetraceError(
                    f"cannot write {target}: {error.strerror or error}; choose another -o"
                ) from error
            written.append(target)
    return written


def _below(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else Path(path.name)


def check_source_writable(file: str, *, force: bool) -> None:
    """Refuse a file that is not to be written, before a long run and not after it.

    Raises:
        ShapetraceError: With the reason and the way out.
    """
    path = Path(file)
    if not force and is_installed(str(path.resolve())):
        raise ShapetraceError(
            f"{file} belongs to an installed package; write a copy with -o DIR, or use --force"
        )
    try:
        check_place(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ShapetraceError(
            f"{file} is not writable: {reason}; write a copy with -o DIR"
        ) from error
    if not force and _uncommitted(path):
        raise ShapetraceError(f"{file} has uncommitted changes; commit them, or use --force")


def _check(file: Rewritten, *, force: bool) -> None:
    check_source_writable(file.file, force=force)
    try:
        now = Path(file.file).read_bytes()
    except OSError as error:
        raise ShapetraceError(f"cannot read {file.file}: {error.strerror}") from error
    if now != file.old:
        raise ShapetraceError(f"{file.file} has changed since it was run; run again")


def _uncommitted(path: Path) -> bool:
    """Whether git knows the file and it differs from the last commit; no git, no opinion."""
    command = ["git", "-C", str(path.resolve().parent), "status", "--porcelain", "--", path.name]
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - fixed words
    except OSError:
        return False
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return done.returncode == 0 and any(not line.startswith(("??", "!!")) for line in lines)


def _backup(path: Path) -> Path:
    """A name beside the file that is free: an older copy is not overwritten."""
    first = path.with_name(path.name + ".bak")
    number = 1
    backup = first
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}.bak{number}")
    return backup
