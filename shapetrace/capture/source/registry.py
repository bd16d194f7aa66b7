"""What rewritten code calls, and the numbers by which it names functions and bindings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from shapetrace.records.trace import Site

ENTER, SEE, SEE_ALL, SEE_ATTRIBUTE, BEGIN, HOLD, MARK, EXIT, SHIELD, PASS = (
    f"\0shapetrace:{name}"
    for name in [
        "enter",
        "see",
        "see_all",
        "see_attribute",
        "begin",
        "hold",
        "mark",
        "exit",
        "shield",
        "pass",
    ]
)
"""Constants in rewritten code, which `swap` replaces by the functions themselves."""


@dataclass(frozen=True, slots=True)
class BoundSite:
    """A `Site`, and what the source says of the value.

    Attributes:
        site: The place.
        owner: Number of its function.
        annotation: As written; empty when there is none.
        inherited: Whether the annotation stands at an earlier binding of the same variable.
            To a type checker it holds here too; people who rebind a name to another shape
            mean otherwise, so one that does not hold is taken as not said.
    """

    site: Site
    owner: int
    annotation: str = ""
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class FunctionSite:
    """A function that reports, and where it is.

    Attributes:
        file: Source file.
        line: Line of its ``def``.
        qualname: Qualified name.
        name: Its own name.
        internal: Whether it is torch's.
        braces: Parts in braces of its annotations: ``self.d_k`` of ``"B {self.d_k}"``.
    """

    file: str
    line: int
    qualname: str
    name: str
    internal: bool
    braces: tuple[str, ...] = ()


@dataclass(slots=True)
class Registry:
    """Numbers that rewritten code reports, and what they stand for; one per process."""

    bindings: list[BoundSite] = field(default_factory=list)
    functions: list[FunctionSite] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    """What is not seen inside of, each as a note says it."""


REGISTRY = Registry()


def is_internal(file: str) -> bool:
    """Whether a file belongs to torch itself."""
    return f"{os.sep}torch{os.sep}" in file
