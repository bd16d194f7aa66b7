"""The model's own error, so that the package can be lifted out whole."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ModelError(ValueError):
    """A configuration, a weights file or an input that the model cannot take.

    The message is one clear line: what is wrong, where, and what is allowed.
    """


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A clause for an error message: the nearest names, or all of them when none is near."""
    names = sorted(known)
    same = [name for name in names if name.lower() == word.lower()]
    close = same or get_close_matches(word.lower(), names, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "known: " + ", ".join(names)
