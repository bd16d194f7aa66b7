"""What each axis is as an expression of sizes, kept for axes of which the same was seen.

An expression is found from runs in which one size moved. Then it has to foretell runs that no
fit has seen, with many sizes changed; where it does not, the axis may be the lesser of two,
and that has to foretell others again. What foretells nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from shapetrace.dims import Dim
from shapetrace.naming.evidence import HOLDOUT, JOINT, AxisRun, holds_in_run
from shapetrace.naming.lesser import name_lesser
from shapetrace.naming.name_axis import Naming, name_axis

if TYPE_CHECKING:
    from shapetrace.naming.observations import Probing

_MOST_NAMES = 12
"""That may be one side of the lesser of two."""
_MANY = (JOINT, HOLDOUT)


class Expressions:
    """Expressions for axes, from what probes saw of them."""

    def __init__(self, probing: Probing) -> None:
        """Take what the probes saw."""
        self.probing = probing
        self._known: dict[tuple[object, ...], tuple[Dim, bool]] = {}

    def of_axis(self, size: int, runs: Sequence[AxisRun]) -> tuple[Dim, bool]:
        """An axis as an expression of what moves it, and whether anything does.

        Args:
            size: As in the first run.
            runs: The runs that saw it.
        """
        key = (size, *((name, id(run), other) for name, run, other in runs))
        if key not in self._known:
            self._known[key] = self._found(size, runs)
        return self._known[key]

    def _found(self, size: int, runs: Sequence[AxisRun]) -> tuple[Dim, bool]:
        found = self._fitted(size, runs)
        own = [name for name in found.moved_by if name not in self.probing.inputs]
        dim = found.dim
        if dim.evidence == "literal" and own and len(own) < len(found.moved_by):
            kept = [run for run in runs if not self._moves(run, own)]
            dim = self._fitted(size, kept).dim
            as_here = ", ".join(own)
            dim = replace(dim, detail=f"{dim.detail}; with {as_here} as in this model")
            runs = kept if dim.evidence != "literal" else runs
        if dim.evidence == "literal" and found.moved_by:
            return self._lesser(size, runs, found.moved_by) or dim, True
        failed = [run for run in runs if run[0] in _MANY and not holds_in_run(dim.name, run)]
        if failed:
            lesser = self._lesser(size, runs, found.moved_by)
            return lesser or self._taken_back(dim, size, failed[0]), True
        return dim, bool(found.moved_by)

    def _moves(self, run: AxisRun, names: Sequence[str]) -> bool:
        """Whether a run changed one of some names."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        return any(run[1].sizes[name] != base.sizes[name] for name in names)

    def _fitted(self, size: int, runs: Sequence[AxisRun]) -> Naming:
        """The expression that the runs in which one name moved say of an axis."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        probes: dict[str, dict[int | Fraction, int]] = {}
        for name, run, other in runs:
            if name not in _MANY:
                probes.setdefault(name, {})[Fraction(run.sizes[name], base.sizes[name])] = other
        return name_axis(size, probes, base.sizes)

    def _lesser(self, size: int, runs: Sequence[AxisRun], moved_by: Sequence[str]) -> Dim | None:
        """The lesser or greater of two, where runs that it was not found from say so too."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        unseen = [run for run in runs if run[0] == HOLDOUT]
        points = [(base.sizes, size)]
        points += [(run.sizes, other) for name, run, other in runs if name != HOLDOUT]
        changed = {n for sizes, _ in points for n, x in sizes.items() if x != base.sizes.get(n)}
        others = [name for name in base.sizes if name in changed and name not in moved_by]
        likely = {*moved_by, *others[: max(0, _MOST_NAMES - len(moved_by))]}
        names = [name for name in base.sizes if name in likely]
        text = name_lesser(points, names) if unseen else None
        if text is None or not all(holds_in_run(text, run) for run in unseen):
            return None
        return Dim(text, "probe", "shown by runs in which the two change places")

    def _taken_back(self, dim: Dim, size: int, failed: AxisRun) -> Dim:
        """The number, and where the name or the number did not hold."""
        base = self.probing.base
        assert base is not None  # noqa: S101 - runs are compared with it
        _, run, other = failed
        changed = [f"{n}={size}" for n, size in run.sizes.items() if size != base.sizes.get(n)]
        reason = f"{dim.name} fits each size moved alone, but at {', '.join(changed)} it is {other}"
        return Dim(str(size), "literal", reason)
