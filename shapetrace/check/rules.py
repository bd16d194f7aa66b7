"""The rules: what `shapetrace check` can find, each with a code."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from shapetrace.errors import ShapetraceError, did_you_mean


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong.

    Attributes:
        code: ``ST101``.
        name: A word for it.
        kinds: The kinds of mismatch that it stands for.
        summary: What it says, one line.
        default: Whether it is on when nothing is said.
    """

    code: str
    name: str
    kinds: tuple[str, ...]
    summary: str
    default: bool = True


RULES = (
    Rule(
        "ST101",
        "size",
        ("size", "literal", "expression", "variadic"),
        "an axis has another size than declared",
    ),
    Rule("ST102", "rank", ("rank",), "a tensor has another number of axes than declared"),
    Rule("ST103", "dtype", ("dtype",), "a tensor has another dtype than declared"),
    Rule("ST104", "union", ("union",), "no alternative of a union fits"),
    Rule("ST105", "refused", ("unexplained",), "jaxtyping refuses a value for a reason of its own"),
    Rule(
        "ST106", "form", ("form",), "a value has another form than declared: a container's, or None"
    ),
    Rule("ST201", "unresolved", ("unresolved",), "an annotation cannot be evaluated"),
    Rule("ST202", "unbound", ("unbound",), "an expression uses a name that nothing binds before"),
    Rule("ST301", "two-sizes", ("pinned",), "one name means two sizes in a class or a model"),
    Rule("ST302", "by-accident", ("probe",), "an annotation holds only by today's numbers"),
    Rule(
        "ST401",
        "forgotten",
        ("forgotten", "toothless"),
        "nothing enforces a function's annotations, where others in its file are enforced, "
        "or its decorator has no type checker",
    ),
    Rule(
        "ST402",
        "unenforced",
        ("unenforced",),
        "nothing enforces the annotations of any function in a file",
        default=False,
    ),
    Rule(
        "ST501",
        "never-seen",
        ("never-seen",),
        "no value was ever seen to be one alternative of a union",
        default=False,
    ),
)
PEDANTIC = ("ST501",)
"""Rules about annotations that hold, and that an expert would doubt."""
CODES = tuple(rule.code for rule in RULES)
_BY_KIND = {kind: rule for rule in RULES for kind in rule.kinds}


def rule_of(kind: str) -> Rule:
    """The rule that a kind of mismatch belongs to."""
    return _BY_KIND[kind]


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> frozenset[str]:
    """The codes that are on.

    Args:
        select: Codes, their beginnings (``ST1``), names, or ``ALL``; those on by default
            when empty.
        ignore: Likewise, to be left out.

    Raises:
        ShapetraceError: For a code that is none, or that is selected and ignored at once.
    """
    selected, ignored = list(select), list(ignore)
    both = sorted(set(selected) & set(ignored))
    if both:
        raise ShapetraceError(f"rule {both[0]} is both selected and ignored; choose one")
    defaults = {rule.code for rule in RULES if rule.default}
    wanted = _expanded(selected) if selected else defaults
    return frozenset(wanted - _expanded(ignored))


def _expanded(words: Collection[str]) -> set[str]:
    found: set[str] = set()
    for word in words:
        codes = {
            rule.code
            for rule in RULES
            if word in ("ALL", rule.name) or (word.startswith("ST") and rule.code.startswith(word))
        }
        if not codes:
            known = [*CODES, *(rule.name for rule in RULES), "ALL"]
            raise ShapetraceError(f"there is no rule {word!r}: {did_you_mean(word, known)}")
        found |= codes
    return found


def listed() -> str:
    """The rules, one a line, for help."""
    width = max(len(rule.name) for rule in RULES)
    return "\n".join(
        f"{rule.code}  {rule.name:{width}}  {rule.summary}" + ("" if rule.default else " (off)")
        for rule in RULES
    )
