"""Values taken apart: split into pieces, unpacked into names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide, axis_is, operand_sizes
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(r"unpack")
def unpacked(call: FailedCall) -> Iterator[Clash]:
    """There are as many values as names."""
    found = call.match(r"(?:not enough|too many) values to unpack \(expected (?:at least )?(\d+)")
    value = next((o for o in call.failure.operands if o.role == "value"), None)
    if found is None or value is None:
        return
    names = int(found[1])
    words = "1 name" if names == 1 else f"{names} names"
    if value.shape:
        if value.shape[0] != names:
            yield Clash(f"{axis_is(value, 0)}, for {words}", (ClashSide(value, 0),))
        return
    count = call.number(-1, "count", default=-1)
    if count is None or count in (-1, names):
        return
    split = call.tensor(-1, "split")
    axis, size = call.number(-1, "dim", default=0), call.number(-1, "by", default=-1)
    if split is not None and axis is not None and size is not None and size > 0:
        yield Clash(
            f"{axis_is(split, axis)}, split by {size} it gives {count} pieces for {words}",
            (ClashSide(split, axis % len(operand_sizes(split))),),
        )
    else:
        kind = "pieces" if split is not None else "values"
        yield Clash(f"`{value.text}` gives {count} {kind} for {words}")


@rule(r"split|split_with_sizes|tensor_split")
def sections(call: FailedCall) -> Iterator[Clash]:
    """The pieces' sizes add up to the axis."""
    found = call.match(
        r"expects split_sizes to sum exactly to (\d+) \(input tensor's size at dimension "
        r"(-?\d+)\), but got split_sizes=\[([\d, ]*)\]"
    )
    given = call.tensor(0, "tensor", "self")
    if found is None or given is None:
        return
    axis, size, pieces = int(found[2]), int(found[1]), sizes_in(found[3])
    if (
        -len(operand_sizes(given)) <= axis < len(operand_sizes(given))
        and operand_sizes(given)[axis] == size
    ):
        total = " + ".join(map(str, pieces))
        axis %= len(operand_sizes(given))
        text = f"{axis_is(given, axis)}, and {total} is {sum(pieces)}"
        yield Clash(text, (ClashSide(given, axis),))
