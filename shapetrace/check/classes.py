"""Names that mean two sizes in one object: beside its attributes, or from method to method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shapetrace.check.agreement import owner_path, same
from shapetrace.check.explain import finding, since
from shapetrace.check.mismatch import place_of
from shapetrace.dims import Binding, Bindings, Dim, Named, align, names_in, parse_dims

if TYPE_CHECKING:
    from shapetrace.check.mismatch import Mismatch
    from shapetrace.records.trace import Trace


@dataclass
class Classes:
    """What the names in an object's methods stand for.

    Attributes:
        pinned: Names that are looked after elsewhere.
        varying: The names of the input's axes.
        owned: By path of a module, the whole numbers that it holds itself.
        probed: What probes found a tensor's axes to be.
        bound: By path, class and name: by method, the bindings in the order of the run.
        everywhere: By name of several words: the bindings of all methods.
    """

    pinned: frozenset[str]
    varying: frozenset[str]
    owned: Mapping[str, Mapping[str, int]]
    probed: Mapping[int, tuple[Dim, ...]]
    bound: dict[tuple[str, str, str], dict[str, list[Binding]]] = field(default_factory=dict)
    everywhere: dict[str, list[Binding]] = field(default_factory=dict)

    def check(
        self, trace: Trace, index: int, before: Bindings, after: Bindings
    ) -> Iterator[Mismatch]:
        """Findings about names beside the attributes of their object; the names are noted."""
        owner, method, _ = trace.sites[trace.tensors[index].site].function.rpartition(".")
        path = owner_path(trace, index)
        for name, binding in after.items():
            if name in before or not owner or not isinstance(binding.size, int):
                continue
            if name in self.pinned | self.varying:
                continue
            if "_" in name and binding.source >= 0:
                self.everywhere.setdefault(name, []).append(binding)
            if self._moves_with_input(trace, binding):
                continue
            own = self.owned.get(path, {}).get(name)
            if own is not None and own != binding.size:
                if self.probed or not self.varying:  # else it may be a limit, and move with them
                    yield self._beside_attribute(trace, index, name, own)
            elif own is None and len(name) > 1:
                method = trace.sites[trace.tensors[index].site].function
                self.bound.setdefault((path, owner, name), {}).setdefault(method, []).append(
                    binding
                )

    def finish(self, trace: Trace) -> Iterator[Mismatch]:
        """Findings about names that each method of an object uses for a size of its own."""
        for (_, _, name), methods in self.bound.items():
            if any(len({one.size for one in bindings}) > 1 for bindings in methods.values()):
                continue  # different from call to call: local to the calls
            first, *others = (bindings[0] for bindings in methods.values())
            for other in others:
                if other.size != first.size and self._differ(trace, first, other):
                    yield self._between_methods(trace, name, first, other)
                    break
        yield from self._beside_all(trace)

    def _beside_all(self, trace: Trace) -> Iterator[Mismatch]:
        """Findings about a name of several words that modules hold, all with one size.

        Only where probes tell that some axis of this name is that size for good: a
        ``seq_len`` that modules hold as a limit is another thing than that of the input.
        """
        for name, bindings in self.everywhere.items():
            held = {own[name] for own in self.owned.values() if name in own}
            if not self.probed or len(held) != 1:
                continue
            right = [one for one in bindings if {one.size} == held]
            first = next((one for one in right if not self._moves_with_input(trace, one)), None)
            other = next((one for one in bindings if {one.size} != held), None)
            if first is not None and other is not None:
                yield self._between_methods(trace, name, first, other, "model")

    def _between_methods(
        self, trace: Trace, name: str, first: Binding, other: Binding, whole: str = "class"
    ) -> Mismatch:
        index = other.source
        place = place_of(trace, trace.tensors[index])
        line = f"`{name}` is {other.size} in {place}, but {first.size} {since(trace, first, index)}"
        fix = f"one name means one size in a {whole}: give this axis a name of its own"
        return finding(trace, index, "pinned", (line,), annotated=_written(trace, index), fix=fix)

    def _beside_attribute(self, trace: Trace, index: int, name: str, own: int) -> Mismatch:
        record = trace.tensors[index]
        size = self._size(trace, index, name)
        line = f"`{name}` is {size} in {place_of(trace, record)}, but `self.{name}` is {own}"
        fix = f"one name means one size in a class: correct the size, or give the axis another name than `{name}`"
        return finding(trace, index, "pinned", (line,), annotated=_written(trace, index), fix=fix)

    def _size(self, trace: Trace, index: int, name: str) -> int:
        place = _axis_of(trace, index, name)
        return trace.tensors[index].shape[place] if place is not None else -1

    def _meaning(self, trace: Trace, binding: Binding) -> str:
        place = _axis_of(trace, binding.source, binding.name)
        dims = self.probed.get(binding.source, ())
        if place is None or place >= len(dims) or dims[place].evidence == "literal":
            return ""
        return dims[place].name

    def _moves_with_input(self, trace: Trace, binding: Binding) -> bool:
        meaning = self._meaning(trace, binding)
        return bool(meaning) and not self.varying.isdisjoint(names_in(meaning))

    def _differ(self, trace: Trace, left: Binding, right: Binding) -> bool:
        one, other = self._meaning(trace, left), self._meaning(trace, right)
        return not one or not other or not same(one, other)


def _axis_of(trace: Trace, index: int, name: str) -> int | None:
    """The axis of a value that its declaration calls by a name."""
    record = trace.tensors[index]
    for shape in record.declared.shapes if record.declared else ():
        for place, axis, _ in align(parse_dims(shape.dims), record.shape) or ():
            if isinstance(axis, Named) and axis.name == name:
                return place
    return None


def _written(trace: Trace, index: int) -> str:
    declared = trace.tensors[index].declared
    return " | ".join(shape.dims for shape in declared.shapes) if declared else ""
