"""Attention: widths, and masks by kind and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.broadcasting import mismatch
from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    Fix,
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

    from shapetrace.explain.rules.clash import Fix
    from shapetrace.records.trace import Operand, Shape

_BATCHED = 3
_ATTENTION = r"MultiheadAttention|multi_head_attention_forward"
_LAYERS = rf"{_ATTENTION}|TransformerEncoder(Layer)?"


@rule(_ATTENTION)
def width(call: FailedCall) -> Iterator[Clash]:
    """Queries, keys and values have the widths that the projections take."""
    query, packed = call.tensor(0, "query"), call.tensor(-9, "in_proj_weight")
    said = call.match(r"expecting embedding dimension of (\d+), but got (\d+)")
    if query is None or not operand_sizes(query):
        return
    if said is not None:
        weight = packed or call.tensor(-9, "q_proj_weight")
        widths = (int(said[2]), int(said[1]))
        if weight is not None and (operand_sizes(query)[-1], operand_sizes(weight)[1]) == widths:
            yield pair(query, -1, weight, 1)
        return
    product = call.inner_sizes()
    given = [call.tensor(position, name) for position, name in ((1, "key"), (2, "value"))]
    for operand, letter in zip(given, "kv", strict=True):
        weight = packed or call.tensor(-9, f"{letter}_proj_weight")
        if weight is None or operand is None or not operand_sizes(operand):
            continue
        have, want = operand_sizes(operand)[-1], operand_sizes(weight)[1]
        if {have, want} == product and have != want:
            yield pair(operand, -1, weight, 1, *_other_widths(weight, given))
            return


def _other_widths(weight: Operand, given: list[Operand | None]) -> tuple[Fix, ...]:
    """The module with the widths of the keys and values that it is given."""
    module = weight_of(weight)
    key, value = given
    if not module or key is None or value is None:
        return ()
    return (remake_module(module, kdim=operand_sizes(key)[-1], vdim=operand_sizes(value)[-1]),)


def _sequence(call: FailedCall, operand: Operand) -> int | None:
    """The axis on which positions lie."""
    if call.module is None or len(operand_sizes(operand)) != _BATCHED:
        return 0 if len(operand_sizes(operand)) == _BATCHED - 1 else None
    first = [o.value == "True" for o in call.failure.operands if o.role == "batch_first"]
    nested = call.operation == "TransformerEncoder"  # its own masks: only with batch_first
    return 1 if nested or True in first else 0


@rule(_LAYERS)
def mask_of_pairs(call: FailedCall) -> Iterator[Clash]:
    """A mask of queries and keys is ``n m``, or ``B*h n m``."""
    mask = call.tensor(-9, "attn_mask", "src_mask", "mask")
    query, key = call.tensor(0, "query", "src"), call.tensor(1, "key", "src")
    said = call.match(
        r"The shape of the \dD attn_mask is torch\.Size\(\[([\d, ]*)\]\), but should be "
        r"\(([\d, ]*)\)"
    )
    viewed = call.match(r"shape '\[1, 1, (\d+), (\d+)\]' is invalid for input of size (\d+)")
    if mask is None or query is None or key is None:
        return
    if said is not None and operand_sizes(mask) == sizes_in(said[1]):
        yield from _unlike(call, mask, sizes_in(said[2]), query, key)
    elif viewed is not None and len(operand_sizes(mask)) == 2:  # noqa: PLR2004 - queries and keys
        n = int(viewed[1])
        if operand_sizes(mask)[0] * operand_sizes(mask)[1] == int(viewed[3]) and n == int(
            viewed[2]
        ):
            yield from _unlike(call, mask, (n, n), query, key)


def _unlike(
    call: FailedCall, mask: Operand, wanted: Shape, query: Operand, key: Operand
) -> Iterator[Clash]:
    have = operand_sizes(mask)
    if len(have) != len(wanted):
        return
    start = f"`{mask.text}` is {_listed(have)}, wanted is {_listed(wanted)}"
    axis = next((i for i, (a, b) in enumerate(zip(have, wanted, strict=True)) if a != b), None)
    if axis is None:
        return
    if axis == 0 and len(have) == _BATCHED:
        yield Clash(
            f"{start}: {axis_is(mask, 0)}, batch * heads is {wanted[0]}", (ClashSide(mask, 0),)
        )
        return
    side, what = (query, "queries") if axis == len(have) - 2 else (key, "keys")
    place = _sequence(call, side)
    if place is None or operand_sizes(side)[place] != wanted[axis]:
        return
    text = f"{start}: {axis_is(mask, axis)}, {axis_is(side, place)} (the sequence of {what})"
    yield Clash(text, (ClashSide(mask, axis), ClashSide(side, place)))


def _listed(shape: Shape) -> str:
    return " ".join(map(str, shape))


@rule(_LAYERS)
def mask_of_keys(call: FailedCall) -> Iterator[Clash]:
    """A mask of padding is ``B m``."""
    mask = call.tensor(-9, "key_padding_mask", "src_key_padding_mask")
    key = call.tensor(1, "key", "src")
    if call.match(r"Mask size should match input size|mask shape should be \(B, L\)"):
        yield from _unlike_keys(call, mask, key)
        return
    said = call.match(r"key_padded_mask\.shape\[(\d)\] to be (\d+), but got (\d+)")
    if mask is None or key is None or said is None or len(operand_sizes(key)) != _BATCHED:
        return
    axis, wanted, got = map(int, said.groups())
    place = _sequence(call, key)
    if place is None or axis >= len(operand_sizes(mask)) or operand_sizes(mask)[axis] != got:
        return
    place = place if axis == 1 else 1 - place
    if operand_sizes(key)[place] == wanted:
        what = "the sequence of keys" if axis == 1 else "the batch"
        yield pair(mask, axis, key, place, note=f" ({what})")


def _unlike_keys(call: FailedCall, mask: Operand | None, key: Operand | None) -> Iterator[Clash]:
    """A mask of padding that is not ``B m``, of which torch says no sizes."""
    place = _sequence(call, key) if key is not None else None
    if mask is None or key is None or place is None or len(operand_sizes(key)) != _BATCHED:
        return
    if len(operand_sizes(mask)) != 2:  # noqa: PLR2004 - batch and keys
        yield ranks(mask, "a mask of padding has 2")
        return
    for axis, other in enumerate((1 - place, place)):
        if operand_sizes(mask)[axis] != operand_sizes(key)[other]:
            what = "the sequence of keys" if axis == 1 else "the batch"
            yield pair(mask, axis, key, other, note=f" ({what})")
            return


@rule(_ATTENTION)
def kinds(call: FailedCall) -> Iterator[Clash]:
    """How many axes a mask may have, and keys as many positions as values."""
    mask = call.tensor(-9, "attn_mask")
    found = call.match(r"expected `attn_mask` to be `None`, (\d)-D or (\d)-D but found (\d)-D")
    if mask is not None and found is not None and len(operand_sizes(mask)) == int(found[3]):
        yield ranks(mask, f"a mask has {found[1]} or {found[2]}")
    key, value = call.tensor(1, "key"), call.tensor(2, "value")
    unlike = call.match(r"key shape torch\.Size\(\[[\d, ]*\]\) does not match value shape")
    if key is not None and value is not None and unlike is not None:
        for axis, (a, b) in enumerate(zip(operand_sizes(key), operand_sizes(value), strict=False)):
            if a != b and call.mentions(a, b) and axis < len(operand_sizes(key)) - 1:
                yield pair(key, axis, value, axis)
                return


@rule(r"scaled_dot_product_attention")
def scaled(call: FailedCall) -> Iterator[Clash]:
    """Queries ``... n d``, keys ``... m d``, values ``... m d_v``, a mask like ``... n m``."""
    query, key, value = (
        call.tensor(position, name) for position, name in enumerate(("query", "key", "value"))
    )
    mask = call.tensor(3, "attn_mask")
    if query is None or key is None or len(operand_sizes(query)) < 2 or len(operand_sizes(key)) < 2:  # noqa: PLR2004
        return
    found = call.match(r"\((\d+)\) must match.* \((\d+)\) at non-singleton dimension (\d+)")
    said = call.inner_sizes()
    if operand_sizes(query)[-1] != operand_sizes(key)[-1] and said == {
        operand_sizes(query)[-1],
        operand_sizes(key)[-1],
    }:
        yield pair(query, -1, key, -1)
        return
    if found is None:
        if (
            value is not None
            and len(said) > 1
            and said == {operand_sizes(key)[-2], *operand_sizes(value)[-2:-1]}
        ):
            yield from (
                (pair(key, -2, value, -2),)
                if operand_sizes(query)[-1] == operand_sizes(key)[-1]
                else ()
            )
        return
    numbers, dimension = {int(found[1]), int(found[2])}, int(found[3])
    first = list(mismatch([query, key], numbers, dimension))
    if first:
        yield from first
        return
    others = [] if mask is None else list(_mask(mask, query, key, numbers, dimension))
    for side in (query, key) if value is not None else ():
        others += mismatch([side, value or side], numbers, dimension)
    if len(others) == 1:
        yield others[0]


def _mask(
    mask: Operand, query: Operand, key: Operand, numbers: set[int], dimension: int
) -> Iterator[Clash]:
    rank = max(len(operand_sizes(query)), len(operand_sizes(key)))
    axis = dimension - max(rank, len(operand_sizes(mask)))
    side, place = (key, -2) if axis == -1 else (query, axis)
    if not -min(len(operand_sizes(mask)), len(operand_sizes(side))) <= axis < 0:
        return
    if {operand_sizes(mask)[axis], operand_sizes(side)[place]} != numbers or len(numbers) == 1:
        return
    fixes: tuple[Fix, ...] = ()
    scores = (*operand_sizes(query)[:-1], operand_sizes(key)[-2])
    if axis == -2 and operand_sizes(mask) == (scores[0], scores[-1]) and len(scores) == 4:  # noqa: PLR2004
        source = f"{mask.text}[:, None, None, :]"
        fixes = (replace(mask, source, f"use `{source}`, a mask of keys"),)
    yield pair(mask, axis, side, place, *fixes)


@rule(r"Transformer")
def whole(call: FailedCall) -> Iterator[Clash]:
    """Both sides of a Transformer have one batch."""
    src, tgt = call.tensor(0, "src"), call.tensor(1, "tgt")
    if src is None or tgt is None or len(operand_sizes(src)) != _BATCHED != len(operand_sizes(tgt)):
        return
    if "batch number of src and tgt must be equal" in call.message:
        unlike = [axis for axis in (0, 1) if operand_sizes(src)[axis] != operand_sizes(tgt)[axis]]
        first = any(o.role == "batch_first" and o.value == "True" for o in call.failure.operands)
        axis = 0 if first else 1
        if axis in unlike:
            yield pair(src, axis, tgt, axis, note=" (the batch)")
