"""Normalisations: the axes that are normalised, and the channels that have a scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    axis_is,
    operand_sizes,
    pair,
    ranks,
    remake_module,
)
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(r"LayerNorm|RMSNorm|layer_norm|rms_norm")
def last_axes(call: FailedCall) -> Iterator[Clash]:
    """The last axes are those of ``normalized_shape``."""
    given = call.tensor(0, "input")
    found = call.match(r"Given normalized_shape=\[([\d, ]*)\],.* got input of size ?\[([\d, ]*)\]")
    if given is None or found is None or operand_sizes(given) != sizes_in(found[2]):
        return
    wanted = sizes_in(found[1])
    weight = call.tensor(-9, "weight")
    if len(wanted) > len(operand_sizes(given)):
        yield ranks(given, f"{len(wanted)} are normalised")
        return
    for behind in range(-1, -len(wanted) - 1, -1):
        if operand_sizes(given)[behind] == wanted[behind]:
            continue
        if weight is not None and operand_sizes(weight) == wanted:
            module, shape = weight_of(weight), operand_sizes(given)[-len(wanted) :]
            new = shape if len(shape) > 1 else shape[0]
            fixes = (remake_module(module, normalized_shape=new),) if module else ()
            yield pair(given, behind, weight, behind, *fixes)
        else:
            axis = len(operand_sizes(given)) + behind
            yield Clash(
                f"{axis_is(given, axis)}, wanted is {wanted[behind]}", (ClashSide(given, axis),)
            )
        return


@rule(r"(Lazy)?BatchNorm\dd|batch_norm|(Lazy)?InstanceNorm\dd|instance_norm|SyncBatchNorm")
def channels(call: FailedCall) -> Iterator[Clash]:
    """Axis 1 has the channels that are counted for."""
    given, weight = call.tensor(0, "input"), call.tensor(-9, "weight")
    if given is None:
        return
    wrong = call.match(r"expected (\d)D(?: or (\d)D)? input \(got (\d)D input\)")
    if wrong is not None and len(operand_sizes(given)) == int(wrong[3]):
        also = f" or {wrong[2]}" if wrong[2] else ""
        yield ranks(given, f"`{call.operation}` takes {wrong[1]}{also}")
        return
    single = call.match(r"more than 1 value per channel when training, got input size")
    if single is not None and operand_sizes(given):
        yield Clash(f"{axis_is(given, 0)}; training needs more than one value per channel")
        return
    found = call.match(r"(?:running_mean|weight) should contain (\d+) elements not (\d+)")
    other = call.match(r"dim=1 to match num_features \((\d+)\), but got: (\d+)")
    numbers = (found[1], found[2]) if found else (other[2], other[1]) if other else None
    if (
        numbers is None
        or not operand_sizes(given)[1:]
        or operand_sizes(given)[1] != int(numbers[0])
    ):
        return
    if weight is not None and operand_sizes(weight) == (int(numbers[1]),):
        module = weight_of(weight)
        fixes = (remake_module(module, num_features=operand_sizes(given)[1]),) if module else ()
        yield pair(given, 1, weight, 0, *fixes)
    else:
        yield Clash(
            f"{axis_is(given, 1)}, wanted are {numbers[1]} channels", (ClashSide(given, 1),)
        )


@rule(r"GroupNorm|group_norm")
def groups(call: FailedCall) -> Iterator[Clash]:
    """Axis 1 has the channels that have a scale, a multiple of the groups."""
    given, weight = call.tensor(0, "input"), call.tensor(-9, "weight")
    found = call.match(r"weight of shape \[(\d+)\] and input of shape \[([\d, ]*)\]")
    uneven = call.match(r"input of shape \[([\d, ]*)\] and num_groups=(\d+)")
    if given is None:
        return
    if found is not None and weight is not None and operand_sizes(given) == sizes_in(found[2]):
        if operand_sizes(weight) == (int(found[1]),):
            module = weight_of(weight)
            fixes = (remake_module(module, num_channels=operand_sizes(given)[1]),) if module else ()
            yield pair(given, 1, weight, 0, *fixes)
    elif uneven is not None and operand_sizes(given) == sizes_in(uneven[1]):
        text = f"{axis_is(given, 1)}, no multiple of {uneven[2]} groups"
        yield Clash(text, (ClashSide(given, 1),))
