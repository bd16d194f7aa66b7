"""Runs a function under the recorder, for the operators alone."""

from shapetrace.capture import record
from shapetrace.cost import flops


def recorded(function):
    """The operators that a function ran, as `OpRecord`s."""
    with record(None) as recording:
        function()
    return recording.trace.ops


def total(function):
    """FLOPs of a function; every operator that it runs must be modelled."""
    priced = [(op, flops(op)) for op in recorded(function)]
    assert not [op.name for op, cost in priced if cost is None]
    return sum(cost for _, cost in priced)
