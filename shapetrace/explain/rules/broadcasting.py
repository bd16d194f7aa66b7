"""Elementwise operations, `expand`, and values assigned to parts of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide, axis_is, operand_sizes, pair, ranks
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand, Shape

_MUST_MATCH = r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
_AT = r" at non-singleton dimension (\d+)"
EXPANDED = (
    r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)"
    r" at non-singleton dimension (\d+)\.\s+Target sizes: \[([\d, ]*)\]\.\s+"
    r"Tensor sizes: \[([\d, ]*)\]"
)
"""What torch says of an expansion: size, wanted, axis, the sizes wanted, those that are."""
_SIGNS = r"[-+*/%&|^]+=?|\*\*=?|compare"
_METHODS = (
    r"(add|sub|mul|div|lerp|addcmul|addcdiv|masked_fill|logical_and|logical_or|logical_xor|copy)_?"
)
_FUNCTIONS = (
    r"where|maximum|minimum|pow|atan2|eq|ne|lt|le|gt|ge|fmod|remainder|subtract|multiply|divide"
    r"|true_divide|floor_divide|isclose|cosine_similarity|pairwise_distance|dist"
)


@rule(rf"{_SIGNS}|{_METHODS}|{_FUNCTIONS}")
def elementwise(call: FailedCall) -> Iterator[Clash]:
    """Sizes from the last axis on are equal, or one of them is 1 (broadcasting semantics)."""
    found = call.match(_MUST_MATCH + _AT)
    if found is None:
        yield from _weightless(call)
        yield from _grown(call)
        return
    a, b, dimension = map(int, found.groups())
    yield from mismatch(call.tensors, {a, b}, dimension)


def mismatch(tensors: list[Operand], numbers: set[int], dimension: int) -> Iterator[Clash]:
    """Two operands that have two sizes on an axis, where only one axis can be meant.

    Torch broadcasts several operands one after the other, and counts the axis among those
    that there are by then: as many as any operand has.
    """
    found: dict[int, Clash] = {}
    for place, first in enumerate(tensors):
        for second in tensors[place + 1 :]:
            least = max(len(operand_sizes(first)), len(operand_sizes(second)))
            for rank in {len(operand_sizes(o)) for o in tensors if len(operand_sizes(o)) >= least}:
                for clash in mismatch_at([first, second], numbers, dimension - rank):
                    found.setdefault(dimension - rank, clash)
    if len(found) == 1:
        yield from found.values()


def mismatch_at(tensors: list[Operand], numbers: set[int], axis: int) -> Iterator[Clash]:
    """The first two operands that have two sizes on an axis counted from the end."""
    having = [
        o
        for o in tensors
        if len(operand_sizes(o)) >= -axis > 0 and operand_sizes(o)[axis] in numbers
    ]
    for position, first in enumerate(having):
        for second in having[position + 1 :]:
            if {operand_sizes(first)[axis], operand_sizes(second)[axis]} == numbers and len(
                numbers
            ) > 1:
                yield pair(first, axis, second, axis)
                return


def _weightless(call: FailedCall) -> Iterator[Clash]:
    """What torch says of tensors without values: an index, and the sizes of one operand."""
    found = call.match(
        r"broadcast a dimension of length (\d+) at (-?\d+)! Mismatching argument at index \d+ "
        r"had torch\.Size\(\[([\d, ]*)\]\); but expected shape should be broadcastable to "
        r"\[([\d, ]*)\]"
    )
    if found is None:
        return
    shape, wanted = sizes_in(found[3]), sizes_in(found[4])
    axis = int(found[2])
    if not -len(shape) <= axis < 0 or len(wanted) < -axis:
        return
    yield from mismatch_at(call.tensors, {shape[axis], wanted[axis]}, axis)


def _grown(call: FailedCall) -> Iterator[Clash]:
    """What is changed in place keeps its sizes."""
    found = call.match(
        r"output with shape \[([\d, ]*)\] doesn't match the broadcast shape \[(.*)\]"
    )
    given = call.tensor(0, "input")
    if found is not None and given is not None and operand_sizes(given) == sizes_in(found[1]):
        have, want = (" ".join(map(str, sizes_in(text))) for text in (found[1], found[2]))
        text = f"`{given.text}` is {have or 'one number'}, and in place it cannot become {want}"
        yield Clash(text, (ClashSide(given),))


@rule(r"expand|broadcast_to|expand_as")
def expand(call: FailedCall) -> Iterator[Clash]:
    """An axis of another size than 1 keeps its size (torch.Tensor.expand)."""
    given = call.tensor(0)
    found = call.match(EXPANDED)
    if given is None:
        return
    if found is not None and operand_sizes(given) == sizes_in(found[5]):
        axis = int(found[3]) - len(sizes_in(found[4])) + len(operand_sizes(given))
        other = call.tensor(1, "other") if call.operation == "expand_as" else None
        if other is not None and operand_sizes(other) == sizes_in(found[4]):
            yield pair(given, axis, other, int(found[3]))
        else:
            text = f"{axis_is(given, axis)}, and expands to {found[1]} only from 1"
            asked = [o for o in call.failure.operands if o.value == found[1]]
            yield Clash(
                text, (ClashSide(given, axis), *(ClashSide(o) for o in asked if len(asked) == 1))
            )
    few = call.match(r"the number of sizes provided \((\d+)\) must be greater or equal to the")
    if few is not None and int(few[1]) < len(operand_sizes(given)):
        yield ranks(given, f"more than the sizes asked for ({few[1]})")


@rule(r"assign")
def assignment(call: FailedCall) -> Iterator[Clash]:
    """What is assigned to a part broadcasts to the part's sizes."""
    part, value = call.tensor(-9, "part"), call.tensor(-9, "value")
    found = call.match(EXPANDED)
    indexed = call.match(
        r"value tensor of shape \[([\d, ]*)\] cannot be broadcast to indexing result of "
        r"shape \[([\d, ]*)\]"
    )
    if part is None or value is None:
        return
    few = call.match(r"the number of sizes provided \((\d+)\) must be greater or equal to the")
    if few is not None and int(few[1]) == len(operand_sizes(part)) < len(operand_sizes(value)):
        yield ranks(value, f"`{part.text}` has {len(operand_sizes(part))}")
    if found is not None and operand_sizes(part) == sizes_in(found[4]):
        wanted, given = int(found[1]), int(found[2])
        behind = int(found[3]) - len(operand_sizes(part))
        if (
            _ends(operand_sizes(value), sizes_in(found[5]))
            and operand_sizes(value)[behind] == given
        ):
            yield _places(part, value, behind, wanted)
    elif indexed is not None and (sizes_in(indexed[1]), sizes_in(indexed[2])) == (
        *(operand_sizes(value), operand_sizes(part)),
    ):
        for behind in range(-1, -min(len(operand_sizes(part)), len(operand_sizes(value))) - 1, -1):
            if operand_sizes(value)[behind] not in (1, operand_sizes(part)[behind]):
                yield _places(part, value, behind, operand_sizes(part)[behind])
                return


def _ends(shape: Shape, said: Shape) -> bool:
    """Whether a shape is the one said, but for axes of size 1 before it."""
    return shape[len(shape) - len(said) :] == said and set(shape[: len(shape) - len(said)]) <= {1}


def _places(part: Operand, value: Operand, behind: int, wanted: int) -> Clash:
    clash = pair(part, behind, value, behind)
    places = "1 place" if wanted == 1 else f"{wanted} places"
    return Clash(f"{clash.text}: {places} for {operand_sizes(value)[behind]}", clash.parts)
