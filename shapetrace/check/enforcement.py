"""Functions whose annotations nothing enforces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from shapetrace.records.signature import Signature


@dataclass(frozen=True, slots=True)
class Unenforced:
    """A function that nothing checks.

    Attributes:
        signature: The function.
        kind: ``forgotten`` beside others in its file that are checked; ``unenforced`` in a
            file where none is; ``toothless`` under a `jaxtyped` without a type checker.
        example: A function of the file that is checked; empty when there is none.
    """

    signature: Signature
    kind: Literal["forgotten", "unenforced", "toothless"]
    example: str = ""


def unenforced(signatures: Iterable[Signature]) -> Iterator[Unenforced]:
    """The functions that nothing checks, in order.

    A decorator is forgotten where the file's other functions have one. A file in which none
    has is written to be checked from outside (by tests, by `shapetrace check`), which is a
    choice and not a slip.
    """
    known = list(dict.fromkeys(signatures))
    checked: dict[str, str] = {}
    for one in known:
        if one.enforcement == "checked":
            checked.setdefault(one.file, one.function)
    for one in known:
        if one.enforcement == "unchecked":
            yield Unenforced(one, "toothless")
        elif one.enforcement == "none" and one.file in checked:
            yield Unenforced(one, "forgotten", checked[one.file])
        elif one.enforcement == "none":
            yield Unenforced(one, "unenforced")
