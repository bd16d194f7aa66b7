"""Sums over a run, as every format shows them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Part:
    """The parameters of one part of a model: ``attention``, ``feed-forward``, ...

    Attributes:
        name: The part.
        count: Numbers in it, shared ones once.
        nbytes: Their bytes.
    """

    name: str
    count: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over a run.

    Attributes:
        parameters: Parameters, shared ones once.
        parameter_bytes: Their bytes.
        parameters_by_part: The same by part.
        flops: FLOPs of every operator that has a formula.
        flops_by_part: The same by part.
        peak_activation_bytes: Most bytes of activations alive at once; None when unknown.
        unmodelled: Operators without a formula, and how often each ran.
    """

    parameters: int = 0
    parameter_bytes: int = 0
    parameters_by_part: tuple[Part, ...] = ()
    flops: int = 0
    flops_by_part: tuple[tuple[str, int], ...] = ()
    peak_activation_bytes: int | None = None
    unmodelled: tuple[tuple[str, int], ...] = field(default=())


def share(part: int, whole: int) -> str:
    """A part of a whole in percent: ``31.6%``; empty when the whole is nothing."""
    return f"{100 * part / whole:.1f}%" if whole else ""
