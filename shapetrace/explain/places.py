"""Places in the source, as people read them."""

from __future__ import annotations

import os


def place(file: str, line: int) -> str:
    """A place in the source, as short as it can be clicked on."""
    try:
        short = os.path.relpath(file)
    except ValueError:  # another drive
        short = file
    return f"{file if short.startswith('..') else short}:{line}"
