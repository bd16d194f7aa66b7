"""Whether code is installed, or somebody's own that is being worked on."""

from __future__ import annotations

_FOLDERS = ("site-packages", "dist-packages")
"""Where installers put packages; the latter is Debian's."""


def is_installed(file: str) -> bool:
    """Whether a file lies where installers put packages."""
    return any(folder in file for folder in _FOLDERS) and _place(_parts(file)) is not None


def installed_package(file: str) -> str:
    """The installed package or module that a file belongs to; empty for one of somebody's own."""
    parts = _parts(file)
    place = _place(parts)
    return "" if place is None else parts[place + 1].removesuffix(".py")


def _parts(file: str) -> list[str]:
    return file.replace("\\", "/").split("/")


def _place(parts: list[str]) -> int | None:
    """Which part is the innermost folder of packages that has something in it."""
    found = (place for place in range(len(parts) - 2, -1, -1) if parts[place] in _FOLDERS)
    return next(found, None)
