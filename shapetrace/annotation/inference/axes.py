"""One function's axes named: the least general axis strings that hold in every call.

An axis is seen in some calls, each time with a size and perhaps a name. `AxisNames` gives
each axis of a signature, in order, a string: the name that all calls agree on; a name of
its own where they differ, the same one for axes that agree with each other in every call;
an expression where jaxtyping can evaluate it; a number where it is all that is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shapetrace.dims.expressions import ExpressionError, UnboundNameError, evaluate, names_in

Occurrence = tuple[str | None, int]
AxisOccurrences = Mapping[int, Sequence[Occurrence]]
"""By number of the call: each name and size that the axis had in it."""
ANONYMOUS = "_"
_LONGEST = 24
_POINTS = 3
"""Different sizes at which an expression has to be true before it is more than chance."""
_WORDS = (("//", "_div_"), ("/", "_div_"), ("*", "_x_"), ("+", "_plus_"), ("-", "_minus_"))


@dataclass(slots=True)
class Slugs:
    """Plain names for expressions; one table per file, so that equal means equal.

    Attributes:
        names: By expression.
    """

    names: dict[str, str] = field(default_factory=dict)

    def of(self, expression: str) -> str:
        """A name for an expression that can't stand as it is: ``n_plus_1`` for ``n+1``."""
        if expression not in self.names:
            self.names[expression] = self._new(expression)
        return self.names[expression]

    def _new(self, expression: str) -> str:
        slug = re.sub(
            r"^(\d+)\*([A-Za-z]\w*)$", r"\2*\1", expression
        )  # no name begins with a digit
        if lesser := re.fullmatch(r"(min|max)\(([\w.]+),([\w.]+)\)", slug):
            slug = "_".join(lesser.groups())  # min_keep_n
        if not re.search(r"[(){}]", slug):
            for operator, word in _WORDS:
                slug = slug.replace(operator, word)
            slug = _identifier(slug)
            if len(slug) <= _LONGEST:
                return slug
        first = _identifier((re.findall(r"[A-Za-z]\w*", expression) or ["size"])[0])
        taken = set(self.names.values())
        return next(
            name for number in range(1, 10_000) if (name := f"{first}_{number}") not in taken
        )


def _identifier(text: str) -> str:
    """Text as an axis name; jaxtyping takes a leading underscore for "anything"."""
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name.isidentifier() else f"size_{name}" if name else "size"


@dataclass(slots=True)
class AxisNames:
    """Names for the axes of one function, given out in the order of its signature.

    Attributes:
        slugs: Names for expressions.
        owned: By number of the call: the whole numbers that the object holds whose method it is.
        invented: The names that nobody uses: ``x_1``, ``n_or_1``.
    """

    slugs: Slugs = field(default_factory=Slugs)
    owned: Sequence[Mapping[str, int]] = ()
    invented: set[str] = field(default_factory=set)
    _bound: dict[str, dict[int, int]] = field(default_factory=dict)
    _firm: set[str] = field(default_factory=set)
    _fresh: dict[str, AxisOccurrences] = field(default_factory=dict)
    _batches: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)

    def name(self, column: AxisOccurrences, hint: str, *, firm: bool) -> str:
        """The string for an axis.

        Args:
            column: What it was in each call.
            hint: A name for an axis that nothing else names: ``x_0``.
            firm: Whether every call of the function binds it, those not seen too: then later
                axes may be expressions in it.
        """
        if any(len({size for _, size in seen}) > 1 for seen in column.values()):
            return ANONYMOUS  # two sizes in one call: no name can stand for both
        token = self._token(column, hint)
        if token.isidentifier():
            self._bind(token, column)
            if firm:
                self._firm.add(token)
        return token

    def _token(self, column: AxisOccurrences, hint: str) -> str:
        names = list(dict.fromkeys(name for seen in column.values() for name, _ in seen))
        sizes = {size for seen in column.values() for _, size in seen}
        if names == [None] and len(sizes) == 1:
            return str(sizes.pop())
        if len(names) == 1 and names[0] is not None:
            return self._named(names[0], column)
        if (word := self._word_of_class(column, names)) and self._fits(word, column):
            return word
        base = self._joined(column, names, hint) if len(names) > 1 else _identifier(hint)
        token = self._like_another(column) or self._expression(column)
        if token:
            return token
        token = self._own(column, base)
        self.invented.add(token)
        return token

    def _word_of_class(self, column: AxisOccurrences, names: Sequence[str | None]) -> str:
        """What the class calls a size that its callers call by several names; empty for nothing.

        An attribute that is that size in every call: one that some caller names too, or the
        only one where the sizes differ from object to object.
        """
        if not self.owned:
            return ""
        held = [self.owned[call] for call in column if call < len(self.owned)]
        sizes = [size for seen in column.values() for _, size in seen]
        if len(held) < len(column) or not all(held):
            return ""
        fitting = [
            name
            for name in held[0]
            if all(
                own.get(name) == size
                for own, seen in zip(held, column.values(), strict=True)
                for _, size in seen
            )
        ]
        named = [name for name in fitting if name in names]
        if len(named) == 1:
            return named[0]
        return fitting[0] if len(fitting) == 1 and len(set(sizes)) > 1 else ""

    def _expression(self, column: AxisOccurrences) -> str:
        """An expression in names that every call binds, true at several sizes; else empty."""
        points = {call: (seen[0][1], self._sizes(call)) for call, seen in column.items() if seen}
        found = []
        for name in sorted(self._firm):
            pairs = {(size, bound.get(name, 0)) for size, bound in points.values()}
            if len(pairs) < _POINTS or any(not size or not given for size, given in pairs):
                continue
            up = {size // given for size, given in pairs if size % given == 0}
            down = {given // size for size, given in pairs if given % size == 0}
            if len(up) == 1 and all(size % given == 0 for size, given in pairs):
                found.append(f"{up.pop()}*{name}")
            elif len(down) == 1 and all(given % size == 0 for size, given in pairs):
                found.append(f"{name}//{down.pop()}")
        good = [one for one in found if not one.startswith("1*") and not one.endswith("//1")]
        return good[0] if len(good) == 1 and self._evaluates(good[0], column) else ""

    def _like_another(self, column: AxisOccurrences) -> str:
        """The name of an axis that changed just as this one did; empty when none has."""
        for name, known in self._fresh.items():
            both = {one for call in known.keys() & column.keys() for one in known[call]}
            if len(both) > 1 and _agree(known, column) and self._fits(name, column):
                self._fresh[name] = {**known, **column}
                return name
        return ""

    def _named(self, name: str, column: AxisOccurrences) -> str:
        plain = _identifier(name) if re.fullmatch(r"[\w.]+", name) else ""
        if plain and self._fits(plain, column):
            return plain
        if not plain and self._evaluates(name, column):
            return name
        return self._own(column, plain or self.slugs.of(name))

    def _evaluates(self, expression: str, column: AxisOccurrences) -> bool:
        """Whether jaxtyping can evaluate an expression here, always, and finds it true."""
        try:
            if not set(names_in(expression)) <= self._firm:
                return False
            return all(
                evaluate(expression, self._sizes(call)) == size
                for call, seen in column.items()
                for _, size in seen
            )
        except (ExpressionError, UnboundNameError):
            return False

    def _sizes(self, call: int) -> dict[str, int]:
        return {name: sizes[call] for name, sizes in self._bound.items() if call in sizes}

    def _joined(self, column: AxisOccurrences, names: Sequence[str | None], hint: str) -> str:
        """A name for an axis that has several: ``h_or_h_kv``."""
        numbers = sorted({s for seen in column.values() for n, s in seen if n is None})
        words = [self.slugs.of(name) for name in names if name is not None]
        words += [str(number) for number in numbers]
        joined = "_or_".join(sorted(words, key=lambda word: (word.isdigit(), len(word), word)))
        readable = len(words) == 2 and len(joined) <= _LONGEST  # noqa: PLR2004 - "a or b"
        return _identifier(joined if readable else hint)

    def _own(self, column: AxisOccurrences, base: str) -> str:
        """A name of its own; the same for axes that are the same in every call."""
        number = 1
        while True:
            name = base if number == 1 else f"{base}_{number}"
            known = self._fresh.get(name)
            if known is None and name not in self._bound:
                self._fresh[name] = column
                return name
            if known is not None and _agree(known, column) and self._fits(name, column):
                self._fresh[name] = {**known, **column}
                return name
            number += 1

    def _fits(self, name: str, column: AxisOccurrences) -> bool:
        bound = self._bound.get(name, {})
        return all(
            bound.get(call, size) == size for call, seen in column.items() for _, size in seen
        )

    def _bind(self, name: str, column: AxisOccurrences) -> None:
        bound = self._bound.setdefault(name, {})
        bound.update((call, seen[0][1]) for call, seen in column.items())

    def variadic(self, shapes: Mapping[int, Sequence[tuple[int, ...]]], base: str) -> str:
        """The string for a run of axes whose number differs: ``*batch``.

        Args:
            shapes: By number of the call: the run's sizes each time.
            base: What to call it.
        """
        if any(len(set(seen)) > 1 for seen in shapes.values()):
            return "..."
        runs = {call: tuple(seen[0]) for call, seen in shapes.items()}
        number = 1
        while True:
            name = base if number == 1 else f"{base}_{number}"
            known = self._batches.get(name, {})
            common = known.keys() & runs.keys()
            if not known or (common and all(known[call] == runs[call] for call in common)):
                self._batches[name] = {**known, **runs}
                return f"*{name}"
            number += 1


def _agree(known: AxisOccurrences, column: AxisOccurrences) -> bool:
    """Whether two axes are the same, by name and size, in every call that has both."""
    common = known.keys() & column.keys()
    return bool(common) and all(set(known[call]) == set(column[call]) for call in common)
