"""The totals of a trace: parameters, FLOPs and memory, whole and by part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from shapetrace.cost.memory import Peak, distinct_parameters, peak, tied_to
from shapetrace.cost.parts import PARTS, ModelPart, part_of
from shapetrace.cost.prices import Prices, price
from shapetrace.units import FLOP_CONVENTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from shapetrace.records.trace import Trace

ByPart = tuple[tuple[ModelPart, int], ...]
"""A number for each of the six parts, in their fixed order."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run and its model come to.

    Attributes:
        parameters: Elements of all parameters; a tied one counts once.
        trainable_parameters: Those that require a gradient.
        parameter_bytes: Their bytes.
        parameters_by_part: Elements by part.
        parameter_bytes_by_part: Bytes by part.
        buffer_bytes: Bytes of all buffers.
        flops: FLOPs of all operators that have a formula.
        flops_forward: Those of the forward.
        flops_backward: Those of the backward, recomputation included.
        flops_by_part: FLOPs by part.
        unmodelled: Operators without a formula, with how often they ran.
        peak_activations: The most bytes of activations alive at once, and where.
        convention: What a FLOP is.
    """

    parameters: int
    trainable_parameters: int
    parameter_bytes: int
    parameters_by_part: ByPart
    parameter_bytes_by_part: ByPart
    buffer_bytes: int
    flops: int
    flops_forward: int
    flops_backward: int
    flops_by_part: ByPart
    unmodelled: tuple[tuple[str, int], ...]
    peak_activations: Peak
    convention: str = FLOP_CONVENTION

    @property
    def peak_activation_bytes(self) -> int:
        """The most bytes of activations alive at once."""
        return self.peak_activations.nbytes


def summarise(trace: Trace, prices: Prices | None = None) -> Summary:
    """The totals of a trace.

    Args:
        trace: Any trace, an empty or failed one too.
        prices: Its prices, where they are at hand already.
    """
    prices = prices or price(trace)
    part = parts_of(trace)
    parameters = distinct_parameters(trace)
    backward = sum(
        cost or 0
        for op, cost in zip(trace.ops, prices.flops, strict=True)
        if op.phase == "backward"
    )
    elements = [(part(record.path), prod(record.shape)) for record in parameters]
    sizes = [(part(record.path), record.nbytes) for record in parameters]
    return Summary(
        parameters=sum(count for _, count in elements),
        trainable_parameters=sum(prod(record.shape) for record in parameters if record.trainable),
        parameter_bytes=sum(count for _, count in sizes),
        parameters_by_part=_by_part(elements),
        parameter_bytes_by_part=_by_part(sizes),
        buffer_bytes=_buffer_bytes(trace),
        flops=prices.totals[-1],
        flops_forward=prices.totals[-1] - backward,
        flops_backward=backward,
        flops_by_part=_by_part(
            [(part(scope.path), own) for scope, own in zip(trace.scopes, prices.own, strict=True)]
        ),
        unmodelled=prices.unmodelled,
        peak_activations=peak(trace),
    )


def parts_of(trace: Trace) -> Callable[[str], ModelPart]:
    """The part of the model that a path lies in, as the trace's classes help to tell."""
    classes = {scope.path: scope.type_name for scope in trace.scopes if scope.kind == "module"}
    owners = (record.path.split(".") for record in trace.parameters)
    prefixes = {".".join(owner[:k]) for owner in owners for k in range(1, len(owner))}
    known = prefixes | set(classes)
    memory: dict[str, ModelPart] = {}

    def part(path: str) -> ModelPart:
        if path not in memory:
            memory[path] = part_of(path, classes, known)
        return memory[path]

    return part


def _by_part(counted: list[tuple[ModelPart, int]]) -> ByPart:
    total: Counter[ModelPart] = Counter()
    for part, count in counted:
        total[part] += count
    return tuple((part, total[part]) for part in PARTS)


def _buffer_bytes(trace: Trace) -> int:
    tied = tied_to(trace)
    return sum(r.nbytes for r in trace.parameters if r.buffer and r.path not in tied)
