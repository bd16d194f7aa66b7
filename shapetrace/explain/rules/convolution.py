"""Convolutions, pooling, padding and resampling: channels, and windows over space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    Fix,
    axis_is,
    operand_sizes,
    ranks,
    remake_module,
    replace,
)
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand

_CONVOLUTION = r"(Lazy)?Conv(Transpose)?\dd|conv(_transpose)?\dd"
_POOLING = r"(adaptive_)?(max|avg|lp)_pool\dd|(Adaptive)?(Max|Avg|LP)Pool\dd"


@rule(_CONVOLUTION)
def channels(call: FailedCall) -> Iterator[Clash]:
    """The axis before space has the channels that the weight takes, times the groups."""
    given, weight = call.tensor(0, "input"), call.tensor(1, "weight")
    found = call.match(
        r"weight of size \[([\d, ]*)\], expected input\[([\d, ]*)\] to have (\d+) channels, "
        r"but got (\d+) channels"
    )
    if given is None or weight is None or found is None:
        return
    space = len(operand_sizes(weight)) - 2
    axis = len(operand_sizes(given)) - space - 1
    wanted, got = int(found[3]), int(found[4])
    if operand_sizes(weight) != sizes_in(found[1]) or axis < 0 or operand_sizes(given)[axis] != got:
        return
    module = weight_of(weight)
    text = f"{axis_is(given, axis)} (channels), `{module or weight.text}` takes {wanted}"
    weight_axis = 0 if "transpose" in call.operation.lower() else 1
    parts = [ClashSide(given, axis)]
    if operand_sizes(weight)[weight_axis] == wanted:
        parts.append(ClashSide(weight, weight_axis))
    yield Clash(text, tuple(parts), _channels_moved(given, axis, wanted, module, got))


def _channels_moved(
    given: Operand, axis: int, wanted: int, module: str, got: int
) -> tuple[Fix, ...]:
    """Channels that lie on the last axis belong before space; else another module."""
    rank = len(operand_sizes(given))
    if operand_sizes(given)[-1] == wanted and axis < rank - 1:
        order = [*range(axis), rank - 1, *range(axis, rank - 1)]
        source = f"{given.text}.permute({', '.join(map(str, order))})"
        return (replace(given, source),)
    return (remake_module(module, in_channels=got),) if module else ()


@rule(_CONVOLUTION)
def axes_of_space(call: FailedCall) -> Iterator[Clash]:
    """Space, channels, and a batch where there is one."""
    given = call.tensor(0, "input")
    found = call.match(
        r"Expected (\d)D \(unbatched\) or (\d)D \(batched\) input to \w+, but got input of "
        r"size: \[([\d, ]*)\]"
    )
    if given is not None and found is not None and operand_sizes(given) == sizes_in(found[3]):
        yield ranks(given, f"`{call.operation}` takes {found[1]} (channels, ...) or {found[2]}")


@rule(_CONVOLUTION)
def kernel(call: FailedCall) -> Iterator[Clash]:
    """The kernel lies within the padded input."""
    given = call.tensor(0, "input")
    found = call.match(r"padded input size per channel: \(([\d x]*)\)\. Kernel size: \(([\d x]*)\)")
    if given is None or found is None:
        return
    padded, windows = sizes_in(found[1]), sizes_in(found[2])
    first = len(operand_sizes(given)) - len(padded)
    for axis, (size, window) in enumerate(zip(padded, windows, strict=False), first):
        if axis >= 0 and window > size >= operand_sizes(given)[axis]:
            more = f" ({size} with padding)" if size != operand_sizes(given)[axis] else ""
            yield Clash(
                f"{axis_is(given, axis)}{more}, the kernel spans {window}",
                (ClashSide(given, axis),),
            )
            return


@rule(_POOLING)
def window(call: FailedCall) -> Iterator[Clash]:
    """At least one window fits on every axis of space."""
    given = call.tensor(0, "input")
    found = call.match(r"Given input size: \(([\dx]*)\)\. Calculated output size: \(([-\dx]*)\)")
    if given is None or found is None:
        return
    before = tuple(int(size) for size in found[1].split("x"))
    after = [int(size) for size in found[2].split("x")] if "-" not in found[2] else []
    if operand_sizes(given)[-len(before) + 1 :] != before[1:] or len(after) != len(before):
        return
    for behind in range(-1, -len(before), -1):
        if after[behind] < 1:
            axis = len(operand_sizes(given)) + behind
            asked = call.setting("kernel_size")
            width = f" of {asked}" if asked else ""
            text = f"{axis_is(given, axis)}, and no window{width} fits"
            yield Clash(text, (ClashSide(given, axis),))
            return


@rule(r"pad|(Reflection|Replication|Circular)Pad\dd")
def padded(call: FailedCall) -> Iterator[Clash]:
    """Reflection takes fewer elements than an axis has."""
    given = call.tensor(0, "input")
    found = call.match(
        r"Padding size should be less than the corresponding input dimension, but got: padding "
        r"\((\d+), (\d+)\) at dimension (\d+) of input \[([\d, ]*)\]"
    )
    if given is None or found is None or operand_sizes(given) != sizes_in(found[4]):
        return
    axis = int(found[3])
    text = f"{axis_is(given, axis)}, and {found[1]} and {found[2]} of it are to be reflected"
    yield Clash(text, (ClashSide(given, axis),))


@rule(r"interpolate|Upsample")
def resampled(call: FailedCall) -> Iterator[Clash]:
    """As many sizes are asked for as there are axes of space."""
    given = call.tensor(0, "input")
    found = call.match(r"spatial dimensions of \[([\d, ]*)\] and output size of \(([\d, ]*)\)")
    mode = call.match(r"Got (\d)D input, but (\w+) mode needs (\d)D input")
    if given is None:
        return
    if found is not None and operand_sizes(given)[2:] == sizes_in(found[1]):
        asked, have = len(sizes_in(found[2])), len(operand_sizes(given))
        yield ranks(given, f"{have - 2} of them of space; sizes asked for: {asked}")
    elif mode is not None and len(operand_sizes(given)) == int(mode[1]):
        yield ranks(given, f"mode {mode[2]} takes {mode[3]}")
