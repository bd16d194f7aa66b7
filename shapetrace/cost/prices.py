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
    from shapetrace.records.trace import OpRecord, TensorRecord, Trace


def flops(op: OpRecord) -> int | None:
    """FLOPs of an operator; None when it has no formula, or one that does not apply.

    A formula does not apply where it misses a shape or attribute, or where an input is
    not strided (recorded as the attribute ``layout``): a sparse product does less.
    """
    operator = operator_of(op.name)
    price = FORMULAS.get(operator) or FORMULAS.get(operator.removesuffix("_"))
    if any(size < 0 for shape in (*op.inputs, *op.outputs) for size in shape or ()):
        return None  # a nested tensor: its sizes are not one number each
    if price is None:
        return 0 if does_no_product(operator) else None
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
        flops: By operator, in the trace's order; 0 for those without a formula.
        unmodelled: Operators without a formula, with how often they ran, most often first.
        clocks: When each operator ran.
        totals: FLOPs of the first k operators, for k from 0.
        own: FLOPs by scope, of the operators that ran in it and in no call inside.
        inclusive: FLOPs by scope, calls inside included.
    """

    flops: tuple[int, ...]
    unmodelled: tuple[tuple[str, int], ...]
    clocks: tuple[int, ...]
    totals: tuple[int, ...]
    own: tuple[int, ...]
    inclusive: tuple[int, ...]

    def between(self, since: int, at: int) -> int:
        """FLOPs of the operators with ``since < op.at <= at``."""
        first, last = bisect_right(self.clocks, since), bisect_right(self.clocks, at)
        return self.totals[last] - self.totals[first]

    def of(self, record: TensorRecord) -> int:
        """FLOPs of the statement that made a value, calls inside the statement included."""
        return self.between(record.since, record.at)


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
    counted = tuple(cost or 0 for cost in found)
    own = _own(trace, counted)
    return Prices(
        flops=counted,
        unmodelled=tuple(missing.most_common()),
        clocks=tuple(op.at for op in trace.ops),
        totals=tuple(accumulate(counted, initial=0)),
        own=own,
        inclusive=_inclusive(trace, own),
    )


def _own(trace: Trace, counted: tuple[int, ...]) -> tuple[int, ...]:
    own = [0] * len(trace.scopes)
    for op, cost in zip(trace.ops, counted, strict=True):
        if cost:
            own[op.scope] += cost
    return tuple(own)


def _inclusive(trace: Trace, own: tuple[int, ...]) -> tuple[int, ...]:
    """Sums up the tree of calls; a call is entered, and so recorded, after its caller."""
    total = list(own)
    for index in range(len(trace.scopes) - 1, -1, -1):
        parent = trace.scopes[index].parent
        if parent is not None:
            total[parent] += total[index]
    return tuple(total)
