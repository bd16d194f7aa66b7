"""Rows looked up by index: embeddings, gather, scatter, index_select, one_hot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    Fix,
    axes,
    axis_is,
    operand_sizes,
    pair,
    ranks,
    remake_module,
    replace,
)
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand


def span(operand: Operand) -> tuple[int, int] | None:
    """The least and the greatest value that an operand holds, where they are known."""
    found = re.fullmatch(r"(-?\d+)(?: to (-?\d+))?", operand.value)
    return (int(found[1]), int(found[2] or found[1])) if found else None


@rule(r"Embedding(Bag)?|embedding(_bag)?")
def embedding(call: FailedCall) -> Iterator[Clash]:
    """An index lies below the number of rows."""
    given, weight = call.tensor(0, "input"), call.tensor(1, "weight")
    if given is None or weight is None or "out of range" not in call.message:
        return
    rows, held = operand_sizes(weight)[0], span(given)
    if held is None or (held[0] >= 0 and held[1] < rows):
        return
    module = weight_of(weight)
    text = f"`{given.text}` holds {given.value}, `{module or weight.text}` has rows 0 to {rows - 1}"
    fixes: tuple[Fix, ...] = ()
    if module and held[0] >= 0:
        least = remake_module(module, num_embeddings=held[1] + 1)
        fixes = (Fix(f"{least.text} or more", remade=least.remade, values=True),)
    yield Clash(text, (ClashSide(given), ClashSide(weight, 0)), fixes)


@rule(r"index_select|take|take_along_dim")
def selected(call: FailedCall) -> Iterator[Clash]:
    """An index lies below the size of its axis."""
    given, index = call.tensor(0, "input"), call.tensor(2, "index")
    axis = call.number(1, "dim")
    if given is None or index is None or axis is None or "out of range" not in call.message:
        return
    held = span(index)
    if (
        call.operation == "index_select"
        and held is not None
        and -1 < axis < len(operand_sizes(given))
    ):
        size = operand_sizes(given)[axis]
        if held[0] < 0 or held[1] >= size:
            text = f"`{index.text}` holds {index.value}, {axis_is(given, axis)}"
            yield Clash(text, (ClashSide(index), ClashSide(given, axis)))


@rule(r"one_hot")
def one_hot(call: FailedCall) -> Iterator[Clash]:
    """A class lies below the number of classes."""
    given, classes = call.tensor(0, "tensor", "input"), call.number(1, "num_classes", default=-1)
    if given is None or classes is None or "smaller than num_classes" not in call.message:
        return
    held = span(given)
    if held is not None and held[1] >= classes > 0:
        yield Clash(
            f"`{given.text}` holds {given.value}, of {classes} classes", (ClashSide(given),)
        )


@rule(r"gather|scatter(_add|_reduce)?_?")
def gathered(call: FailedCall) -> Iterator[Clash]:
    """The index has the tensor's axes, none but `dim` larger (torch.gather, torch.scatter)."""
    given, index = call.tensor(0, "input"), call.tensor(2, "index")
    dim = call.number(1, "dim")
    if given is None or index is None or dim is None:
        return
    source = call.tensor(3, "src") if call.operation != "gather" else None
    if call.match(r"Index tensor must have the same number of dimensions as (input|self) tensor"):
        yield from _ranks(given, index, dim)
    elif source is not None and call.match(r"number of dimensions as src tensor"):
        text = f"`{index.text}` has {axes(len(operand_sizes(index)))}, `{source.text}` has "
        yield Clash(f"{text}{len(operand_sizes(source))}", (ClashSide(index), ClashSide(source)))
    else:
        yield from _larger(call, given, index, source)
        yield from _beyond(call, given, index, dim)


def _ranks(given: Operand, index: Operand, dim: int) -> Iterator[Clash]:
    have, want = len(operand_sizes(index)), len(operand_sizes(given))
    if have == want:
        return
    text = f"`{index.text}` has {axes(have)}, `{given.text}` has {want}"
    others = [size for axis, size in enumerate(operand_sizes(given)) if axis != dim % want]
    fixes: tuple[Fix, ...] = ()
    if have == want - 1 and list(operand_sizes(index)) == others:
        fixes = (replace(index, f"{index.text}.unsqueeze({dim})"),)
    yield Clash(text, (ClashSide(index), ClashSide(given)), fixes)


def _larger(
    call: FailedCall, given: Operand, index: Operand, source: Operand | None
) -> Iterator[Clash]:
    found = call.match(
        r"expected index \[([\d, ]*)\] to be no larger than self \[([\d, ]*)\] apart from "
        r"dimension (\d+)|(?P<i>)Expected index \[([\d, ]*)\] to be (?:smaller|no larger) than "
        r"self \[([\d, ]*)\] apart from dimension (\d+)"
    )
    if found is None:
        return
    texts = [text for text in found.groups() if text]
    if (operand_sizes(index), operand_sizes(given)) != (sizes_in(texts[0]), sizes_in(texts[1])):
        return
    skip = int(texts[2])
    for axis, (a, b) in enumerate(zip(operand_sizes(index), operand_sizes(given), strict=False)):
        if axis != skip and a > b:
            yield pair(index, axis, given, axis)
            return
    for axis, (a, b) in enumerate(
        zip(operand_sizes(index), operand_sizes(source or index), strict=False)
    ):
        if source is not None and a > b:
            yield pair(index, axis, source, axis)
            return


def _beyond(call: FailedCall, given: Operand, index: Operand, dim: int) -> Iterator[Clash]:
    found = call.match(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)")
    held = span(index)
    if found is None or held is None:
        return
    axis = dim % len(operand_sizes(given))
    if int(found[2]) == axis and operand_sizes(given)[axis] == int(found[3]):
        text = f"`{index.text}` holds {index.value}, {axis_is(given, axis)}"
        yield Clash(text, (ClashSide(index), ClashSide(given, axis)))


@rule(r"index_(add|copy|fill)_?")
def indexed(call: FailedCall) -> Iterator[Clash]:
    """There are as many indices as the source has places on the axis."""
    index, source, dim = call.tensor(2, "index"), call.tensor(3, "source"), call.number(1, "dim")
    if index is None or source is None or dim is None or not operand_sizes(source):
        return
    if len(operand_sizes(index)) > 1 and call.match(r"Index (is )?(supposed|should) (to be|have)"):
        yield ranks(index, "one is wanted")
    elif operand_sizes(index) and call.match(
        r"Number of indices \(\d+\) should be equal to source\.size"
    ):
        yield from (
            (pair(index, 0, source, dim),)
            if operand_sizes(index)[0] != operand_sizes(source)[dim]
            else ()
        )
