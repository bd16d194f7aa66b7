"""Tensors put together: concatenated and stacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide, axes, operand_sizes, pair
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(r"cat|concat|concatenate|[hvd]stack|(row|column)_stack")
def concatenated(call: FailedCall) -> Iterator[Clash]:
    """All axes but one are equal (torch.cat)."""
    yield from _ranks(call)
    found = call.match(
        r"except in dimension \d+\. Expected size (\d+) but got size (\d+) for tensor number (\d+)"
        r"|Expected size (?P<a>\d+) in dimension (?P<d>\d+) but got (?P<b>\d+) for tensor number"
    )
    if found is None or len(call.tensors) < 2:  # noqa: PLR2004 - two sides
        return
    numbers = [int(number) for number in found.groups() if number is not None]
    first, last = call.tensors[0], call.tensors[-1]
    if found[3] is not None:
        if numbers[2] >= len(call.tensors):
            return
        last = call.tensors[numbers[2]]
    wanted = (numbers[0], numbers[1] if found[3] is not None else numbers[-1])
    both = list(zip(operand_sizes(first), operand_sizes(last), strict=False))
    at = [axis for axis, sides in enumerate(both) if sides == wanted]
    if len(operand_sizes(first)) == len(operand_sizes(last)) and at:
        yield pair(first, at[0], last, at[0])


def _ranks(call: FailedCall) -> Iterator[Clash]:
    found = call.match(r"must have same number of dimensions: got (\d+) and (\d+)")
    if found is None:
        return
    a, b = int(found[1]), int(found[2])
    first = next((o for o in call.tensors if len(operand_sizes(o)) == a), None)
    second = next((o for o in call.tensors if len(operand_sizes(o)) == b), None)
    if first is not None and second is not None:
        text = f"`{first.text}` has {axes(a)}, `{second.text}` has {b}"
        yield Clash(text, (ClashSide(first), ClashSide(second)))


@rule(r"stack|[hvd]stack")
def stacked(call: FailedCall) -> Iterator[Clash]:
    """All axes are equal (torch.stack)."""
    found = call.match(
        r"stack expects each tensor to be equal size, but got \[([\d, ]*)\] at entry (\d+) and "
        r"\[([\d, ]*)\] at entry (\d+)"
    )
    if found is None or max(int(found[2]), int(found[4])) >= len(call.tensors):
        return
    first, second = call.tensors[int(found[2])], call.tensors[int(found[4])]
    a, b = sizes_in(found[1]), sizes_in(found[3])
    if (operand_sizes(first), operand_sizes(second)) != (a, b):
        return
    if len(a) != len(b):
        text = f"`{first.text}` has {axes(len(a))}, `{second.text}` has {len(b)}"
        yield Clash(text, (ClashSide(first), ClashSide(second)))
    for axis in range(min(len(a), len(b)) if len(a) == len(b) else 0):
        if a[axis] != b[axis]:
            yield pair(first, axis, second, axis)
