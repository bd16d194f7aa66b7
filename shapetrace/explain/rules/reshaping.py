"""Views: the same elements in other axes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide, Fix, axis_is, operand_sizes, ranks
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(r"view|reshape|view_as|reshape_as|unflatten|Unflatten")
def elements(call: FailedCall) -> Iterator[Clash]:
    """A view has as many elements as what it views."""
    found = call.match(r"shape '\[([-\d, ]*)\]' is invalid for input of size (\d+)")
    given = call.tensor(0, "input")
    if found is None or given is None or prod(operand_sizes(given)) != int(found[2]):
        return
    wanted = sizes_in(found[1])
    asked = " x ".join(map(str, wanted))
    text = f"`{given.text}` has {found[2]} elements; {asked}"
    if -1 in wanted:
        known = prod(size for size in wanted if size != -1)
        yield Clash(f"{text} needs a multiple of {known}", (ClashSide(given),))
    else:
        yield Clash(f"{text} is {prod(wanted)}", (ClashSide(given),))


@rule(r"unflatten|Unflatten")
def unflattened(call: FailedCall) -> Iterator[Clash]:
    """The sizes that an axis is split into multiply to its own."""
    found = call.match(
        r"Provided sizes \[([-\d, ]*)\] don't multiply up to the size of dim (\d+) \((\d+)\)"
    )
    given = call.tensor(0, "input")
    if found is None or given is None:
        return
    axis, size = int(found[2]), int(found[3])
    if axis < len(operand_sizes(given)) and operand_sizes(given)[axis] == size:
        wanted = sizes_in(found[1])
        known = prod(part for part in wanted if part != -1)
        asked = " x ".join(map(str, wanted))
        end = f"needs a multiple of {known}" if -1 in wanted else f"is {known}"
        yield Clash(f"{axis_is(given, axis)}; {asked} {end}", (ClashSide(given, axis),))


@rule(r"view|view_as|flatten")
def strides(call: FailedCall) -> Iterator[Clash]:
    """A view cannot reorder memory."""
    given = call.tensor(0)
    if "view size is not compatible" in call.message and given is not None:
        text = f"`{given.text}` is not contiguous, and a view cannot reorder memory"
        before = f"{given.text}.view("
        fixes: tuple[Fix, ...] = ()
        if call.failure.expression.startswith(before):
            other = f"{given.text}.reshape({call.failure.expression.removeprefix(before)}"
            text_of = f"use `{given.text}.reshape(...)`"
            fixes = (Fix(text_of, ((call.failure.expression, other),)),)
        yield Clash(text, (ClashSide(given),), fixes)


@rule(r".*")
def axis_out_of_range(call: FailedCall) -> Iterator[Clash]:
    """An axis that is asked for is there."""
    given = call.tensor(0, "input", "self")
    found = call.match(r"in range of \[-(\d+), (\d+)\], but got (-?\d+)\)")
    ordered = call.match(r"input\.dim\(\) = (\d+) is not equal to len\(dims\) = (\d+)")
    if given is None or not operand_sizes(given):
        return
    if found is not None and int(found[1]) == int(found[2]) + 1 == len(operand_sizes(given)):
        yield ranks(given, f"and axis {found[3]} is asked for")
    elif ordered is not None and int(ordered[1]) == len(operand_sizes(given)):
        yield ranks(given, f"and {ordered[2]} are put in order")
