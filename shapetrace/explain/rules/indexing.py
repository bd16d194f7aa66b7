"""Parts of a tensor: by number, by slices, by masks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide, axes, axis_is, operand_sizes, pair
from shapetrace.explain.rules.lookups import span
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(r"index|assign")
def out_of_bounds(call: FailedCall) -> Iterator[Clash]:
    """An index lies below the size of its axis."""
    owner = call.tensor(0, "self")
    found = call.match(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)")
    if owner is None or found is None:
        return
    axis, size = int(found[2]), int(found[3])
    if any(operand.role == "0" for operand in call.tensors):
        return  # torch counts the axes that tensors index as if they were the first
    if axis < len(operand_sizes(owner)) and operand_sizes(owner)[axis] == size:
        yield Clash(f"index {found[1]}, but {axis_is(owner, axis)}", (ClashSide(owner, axis),))


@rule(r"index|assign")
def beyond(call: FailedCall) -> Iterator[Clash]:
    """What the one tensor of indices holds lies below the size of its axis."""
    owner = call.tensor(0, "self")
    found = call.match(r"index (-?\d+) is out of bounds for dimension \d+ with size (\d+)")
    parts = _parts(call.failure.expression)
    given = [operand for operand in call.tensors if operand.role == "0"]
    if owner is None or found is None or len(given) != 1:
        return
    places = [axis for axis, part in enumerate(parts) if ast.unparse(part) == given[0].text]
    plain = all(isinstance(part, ast.Slice) for part in parts[: places[0]]) if places else False
    held, size = span(given[0]), int(found[2])
    if not plain or held is None or not places[0] < len(operand_sizes(owner)):
        return
    if operand_sizes(owner)[places[0]] == size and (held[1] >= size or held[0] < -size):
        text = f"`{given[0].text}` holds {given[0].value}, {axis_is(owner, places[0])}"
        yield Clash(text, (ClashSide(given[0]), ClashSide(owner, places[0])))


@rule(r"index|assign")
def too_many(call: FailedCall) -> Iterator[Clash]:
    """There are no more indices than axes."""
    owner = call.tensor(0, "self")
    found = call.match(r"too many indices for tensor of dimension (\d+)")
    if owner is None or found is None or len(operand_sizes(owner)) != int(found[1]):
        return
    count = _indices(call.failure.expression)
    if count > len(operand_sizes(owner)):
        text = f"`{owner.text}` has {axes(len(operand_sizes(owner)))}, and {count} are indexed"
        yield Clash(text, (ClashSide(owner),))


def _indices(expression: str) -> int:
    """How many axes the indices of an expression speak of."""
    skipped = (None, ...)
    return sum(
        not isinstance(part, ast.Constant) or part.value not in skipped
        for part in _parts(expression)
    )


def _parts(expression: str) -> list[ast.expr]:
    """The indices of an expression."""
    try:
        node = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return []
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


@rule(r"index|assign|masked_select")
def masks(call: FailedCall) -> Iterator[Clash]:
    """A mask has the sizes of the axes that it stands for."""
    found = call.match(
        r"The shape of the mask \[([\d, ]*)\] at index (\d+) does not match the shape of the "
        r"indexed tensor \[([\d, ]*)\] at index (\d+)"
    )
    owner = call.tensor(0, "self")
    if found is None or owner is None or operand_sizes(owner) != sizes_in(found[3]):
        return
    shape = sizes_in(found[1])
    masked = [o for o in call.tensors if operand_sizes(o) == shape and o.dtype in {"bool", "uint8"}]
    if len({o.text for o in masked}) == 1:
        yield pair(masked[0], int(found[2]), owner, int(found[4]))


@rule(r"index|assign")
def together(call: FailedCall) -> Iterator[Clash]:
    """Tensors of indices broadcast with each other."""
    found = call.match(
        r"indexing tensors could not be broadcast together with shapes ([\[\]\d, ]+)"
    )
    if found is None:
        return
    shapes = [sizes_in(part) for part in found[1].split("]") if "[" in part]
    indices = [o for o in call.tensors if o.role != "self" and operand_sizes(o) in shapes]
    for behind in range(-1, -max((len(s) for s in shapes), default=0) - 1, -1):
        known = [
            o for o in indices if len(operand_sizes(o)) >= -behind and operand_sizes(o)[behind] != 1
        ]
        other = next(
            (o for o in known if operand_sizes(o)[behind] != operand_sizes(known[0])[behind]), None
        )
        if other is not None:
            yield pair(known[0], behind, other, behind)
            return
