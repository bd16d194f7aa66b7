"""What each operator of a trace costs, and what that makes per statement and per call."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import FORMULAS, MissingShapeError, operator_of
from shapetrace.cost.formulas.zero import does_no_product

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord, Trace


def flops(op: OpRecord) -> int | None:
    """FLOPs of an operator; None when it has no formula, or one that does not apply.

    A formula does not apply where it misses a shape or attribute, or where an input is
    not strided (recorded as the attribute ``layout``): a sparse product does less.
    """
    operator = operator_of(op.name)
    price = FORMULAS.get(operator) or FORMULAS.get(operator.removesuffix("_"))
    if price is None:
        return 0 if does_no_product(operator) else None
    if any(size < 0 for shape in (*op.inputs, *op.outputs) for size in shape or ()):
        return None  # a nested tensor: its sizes are not one number each
    if any(name == "layout" and value for name, value in op.attributes):
        return None
    try:
        return price(op)
    except (MissingShapeError, IndexError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Prices:
    """The FLOPs of every operator of a trace.

    Attributes:
        flops: By operator, in the trace's order; None for those without a formula.
        unmodelled: Operators without a formula, with how often they ran, most often first.
        clocks: When each operator ran.
        totals: Known FLOPs of the first k operators, for k from 0.
        unknown: How many of the first k operators have no formula, for k from 0.
        own: Known FLOPs by scope, of the operators that ran in it and in no call inside.
    """

    flops: tuple[int | None, ...]
    unmodelled: tuple[tuple[str, int], ...]
    clocks: tuple[int, ...]
    totals: tuple[int, ...]
    unknown: tuple[int, ...]
    own: tuple[int, ...]

    def between(self, since: int, at: int) -> tuple[int, bool]:
        """Known FLOPs of the operators with ``since < op.at <= at``, and whether those are all.

        Of a statement, from its tensor's `since` and `at`, or of a call, from its start and
        its end: calls inside are included.
        """
        first, last = bisect_right(self.clocks, since), bisect_right(self.clocks, at)
        counted = self.totals[last] - self.totals[first]
        return counted, self.unknown[last] == self.unknown[first]


def price(trace: Trace) -> Prices:
    """Price every operator of a trace; equal operators are priced once."""
    known: dict[tuple[object, ...], int | None] = {}
    found: list[int | None] = []
    for op in trace.ops:
        key = (op.name, op.inputs, op.outputs, op.attributes)
        if key not in known:
            known[key] = flops(op)
        found.append(known[key])
    missing = Counter(op.name for op, cost in zip(trace.ops, found, strict=True) if cost is None)
    own = [0] * len(trace.scopes)
    for op, cost in zip(trace.ops, found, strict=True):
        own[op.scope] += cost or 0
    return Prices(
        flops=tuple(found),
        unmodelled=tuple(missing.most_common()),
        clocks=tuple(op.at for op in trace.ops),
        totals=tuple(accumulate((cost or 0 for cost in found), initial=0)),
        unknown=tuple(accumulate((cost is None for cost in found), initial=0)),
        own=tuple(own),
    )
