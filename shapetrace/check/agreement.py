"""Names that hold only by today's numbers, and names that mean two sizes in one run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from shapetrace.check.explain import CONFIGURATION, finding, since
from shapetrace.check.mismatch import place_of
from shapetrace.dims import (
    Binding,
    Bindings,
    Dim,
    ExpressionError,
    Fixed,
    Named,
    Symbolic,
    UnboundNameError,
    align,
    evaluate,
    names_in,
    parse_dims,
    print_axis,
)

if TYPE_CHECKING:
    from shapetrace.check.mismatch import Mismatch
    from shapetrace.records.trace import Trace

_PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)


VOCABULARY = frozenset({"d_model", "d_ff", "d_k", "d_v", "h_kv", "vocab_size"})
"""Names that mean one size in a whole model, whoever builds its parts."""


@dataclass
class Pins:
    """The names that mean one size everywhere in a run, and who said which.

    Attributes:
        names: Those names.
        known: Their bindings so far; the configuration's come first.
        owned: By path of a module, the whole numbers that it holds itself.
        reported: Findings made, by name, size and site: one is enough.
    """

    names: frozenset[str]
    known: dict[str, Binding] = field(default_factory=dict)
    owned: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reported: set[tuple[str, object, int]] = field(default_factory=set)

    def check(
        self, trace: Trace, index: int, before: Bindings, after: Bindings
    ) -> Iterator[Mismatch]:
        """Findings about the names that a value has just bound in its call."""
        record = trace.tensors[index]
        for name in after:
            if name in before or name not in self.names or self._is_own(trace, index, after[name]):
                continue
            first = self.known.setdefault(name, after[name])
            key = (name, after[name].size, record.site)
            if first.size == after[name].size or key in self.reported:
                continue
            self.reported.add(key)
            line = f"`{name}` is {after[name].size} in {place_of(trace, record)}, but {first.size} {since(trace, first, index)}"
            fix = "one name means one size in a whole run: correct the size, or give this axis a name of its own"
            yield finding(trace, index, "pinned", (line,), annotated=_dims(trace, index), fix=fix)

    def _is_own(self, trace: Trace, index: int, binding: Binding) -> bool:
        """Whether a module was itself built with that number under that name.

        ``in_features`` of a part need not be the whole model's; ``d_model`` is.
        """
        if binding.name in VOCABULARY:
            return False
        own = self.owned.get(owner_path(trace, index), {})
        return own.get(binding.name) == binding.size


def pins(
    trace: Trace,
    names: Collection[str] | None,
    owned: Mapping[str, Mapping[str, int]] | None = None,
) -> Pins:
    """What is pinned before the first value.

    Args:
        trace: The run.
        names: The names; None for the configuration's whole numbers and the vocabulary,
            less the names of the input's axes.
        owned: By path of a module, the whole numbers that it holds itself.
    """
    sizes = whole_numbers(trace)
    varying = {name for name, _ in trace.sizes}
    chosen = frozenset(names) if names is not None else (frozenset(sizes) | VOCABULARY) - varying
    known = {name: Binding(name, sizes[name], CONFIGURATION) for name in chosen & set(sizes)}
    return Pins(chosen, known, owned or {})


def owner_path(trace: Trace, index: int) -> str:
    """Path of the module whose code made a value."""
    path = trace.scopes[trace.tensors[index].scope].path
    return ".".join(part for part in path.split(".") if not part.endswith("()"))


def whole_numbers(trace: Trace) -> dict[str, int]:
    """The configuration's whole numbers by name."""
    return {
        name: value
        for name, value in trace.config
        if isinstance(value, int) and not isinstance(value, bool)
    }


@dataclass
class Probed:
    """Declared names against what probes found the axes to be.

    Attributes:
        universe: The sizes that the model is built from, by the names that mean the same in
            all of it.
        dims: Meanings by tensor, found by probes.
        meanings: For each call, what each name of its own turned out to be, and where.
        inputs: The sizes of the inputs' named axes.
    """

    universe: Mapping[str, int]
    dims: Mapping[int, tuple[Dim, ...]]
    meanings: dict[tuple[int, str], tuple[str, int]] = field(default_factory=dict)
    inputs: Mapping[str, int] = field(default_factory=dict)

    def check(self, trace: Trace, index: int) -> Iterator[Mismatch]:
        """Findings about one value with a single declared shape that holds."""
        record = trace.tensors[index]
        if record.declared is None or len(record.declared.shapes) != 1 or index not in self.dims:
            return
        text = record.declared.shapes[0].dims
        for number, axis, size in align(parse_dims(text), record.shape) or ():
            dim = self.dims[index][number] if number < len(self.dims[index]) else None
            if dim is None or dim.evidence not in ("probe", "input") or size == 1:
                continue
            if isinstance(axis, Named) and self.universe.get(axis.name, size) != size:
                continue  # not even today: the pinned name tells
            line = self._objection(trace, index, axis, dim.name)
            if line:
                fix = f"write `{dim.name}`, or give the axis a name of its own"
                yield finding(trace, index, "probe", (line,), annotated=text, fix=fix)

    def _objection(self, trace: Trace, index: int, axis: object, found: str) -> str:
        """What is wrong with a declared axis that a probe found to be something; else empty."""
        record = trace.tensors[index]
        place = place_of(trace, record)
        match axis:
            case Fixed():
                return f"axis `{print_axis(axis)}` in {place} is no fixed number: it is `{found}`"
            case Named(name, per_leaf=False) if name not in self.universe:
                meaning, source = self.meanings.setdefault((record.scope, name), (found, index))
                if same(meaning, found):
                    return ""
                who = since(trace, Binding(name, 0, source), index)
                return f"`{name}` is `{found}` in {place}, but `{meaning}` {who}: equal only by today's numbers"
            case Named(name, per_leaf=False) | Symbolic(name):
                meaning = self._translated(name, record.scope)
                if not meaning or same(meaning, found) or self._moved_alike(meaning, found):
                    return ""
                return (
                    f"axis `{name}` in {place} is really `{found}`: equal only by today's numbers"
                )
        return ""

    def _moved_alike(self, meaning: str, found: str) -> bool:
        """Whether probes, which double one size at a time, can't tell two expressions apart.

        ``min(M, N)`` is ``N`` wherever they looked while `M` is large; that is no accident.
        """
        if meaning.isidentifier():
            return False
        base = {**self.universe, **self.inputs}
        points = [base, *({**base, name: 2 * size} for name, size in base.items())]
        try:
            return all(evaluate(meaning, p) == evaluate(found, p) for p in points)
        except (ExpressionError, UnboundNameError):
            return False

    def _translated(self, text: str, scope: int) -> str:
        """An expression with a call's own names by what they mean; empty where one is unknown."""
        words: dict[str, str] = {}
        try:
            names = names_in(text)
        except ExpressionError:
            return ""
        for name in names:
            known = name if name in self.universe else self.meanings.get((scope, name), ("", 0))[0]
            if not known:
                return ""
            words[name] = known if known.isidentifier() else f"({known})"
        return re.sub(r"[A-Za-z_]\w*", lambda word: words.get(word[0], word[0]), text)


@lru_cache(maxsize=4096)
def same(left: str, right: str) -> bool:
    """Whether two expressions are equal at points that no accident makes equal."""
    names = tuple(dict.fromkeys([*names_in(left), *names_in(right)]))
    if len(names) > len(_PRIMES) - 2:
        return left == right
    points = [{n: _PRIMES[i + k] for i, n in enumerate(names)} for k in range(3)]
    # the other way round too: `min(a, b)` is `a` only while `a` is the lesser
    points += [{n: _PRIMES[i + 1] for i, n in enumerate(reversed(names))}]
    try:
        return left == right or all(evaluate(left, p) == evaluate(right, p) for p in points)
    except (ExpressionError, UnboundNameError):
        return False


def _dims(trace: Trace, index: int) -> str:
    declared = trace.tensors[index].declared
    return " | ".join(shape.dims for shape in declared.shapes) if declared else ""
