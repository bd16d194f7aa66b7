"""The one exception that a user is meant to read."""

from __future__ import annotations


class ShapetraceError(Exception):
    """Something the user can put right: bad input, a bad configuration, a bad file.

    The message is one clear line: what is wrong, where, and what to do. The command
    line prints it on stderr and exits with ``exit_code``; no traceback is shown unless
    ``--debug`` is given.

    Attributes:
        exit_code: The process's exit code; 2 for bad input.
        verbatim: Whether the message has lines that must stay apart (a caret under a place).
    """

    exit_code = 2
    verbatim = False


class ModelRaisedError(ShapetraceError):
    """The model raised when it was called: the input could be read, and what it led to is told."""

    exit_code = 1


class SpecError(ShapetraceError):
    """A text that cannot be read; the message ends with the text and a caret under the place."""

    verbatim = True


def nearest(word: str, known: list[str] | tuple[str, ...], limit: int = 3) -> list[str]:
    """The known words closest to a misspelt one, best first; empty when none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors pay for it

    same = [name for name in known if name.lower() == word.lower()]
    return same or get_close_matches(word, known, n=limit, cutoff=0.5)


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str:
    """A clause for an error message: the nearest names, or all of them when none is near."""
    close = nearest(word, known)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "known: " + ", ".join(sorted(known))


def with_article(noun: str) -> str:
    """A noun with its article, by its first letter: ``an int``, ``a dict``, ``None``."""
    if noun == "NoneType":
        return "None"
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
