"""Products: matrices, batches of them, linear layers, einsum, grouped products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.broadcasting import EXPANDED, mismatch_at
from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    Fix,
    operand_sizes,
    pair,
    ranks,
    remake_module,
    replace,
)
from shapetrace.explain.rules.registry import FailedCall, broadcasts, rule, sizes_in, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand

_MATRIX = 2
_RANKS = {"mm": 2, "bmm": 3}
"""Axes of each factor, where they are fixed."""


@rule(r"@|@=|matmul|mm|bmm|mv|dot|vdot|inner|addmm|baddbmm|addmv|addbmm|Bilinear")
def product(call: FailedCall) -> Iterator[Clash]:
    """The last axis of the first factor is the one before the last of the second."""
    sides = _factors(call)
    if sides is None:
        return
    a, b = sides
    if not operand_sizes(a) or not operand_sizes(b):
        return
    yield from _summand(call, a, b)
    wrong = next(
        (side for side in sides if len(operand_sizes(side)) != _RANKS.get(call.operation)), None
    )
    if call.operation in _RANKS and wrong is not None:
        if call.match(r"must be a (3D tensor|matrix)"):
            yield ranks(wrong, f"`{call.operation}` takes {_RANKS[call.operation]}")
        return
    inner = -2 if len(operand_sizes(b)) > 1 else -1
    said = call.inner_sizes()
    if len(said) > 1 and said == {operand_sizes(a)[-1], operand_sizes(b)[inner]}:
        yield pair(a, -1, b, inner, *_transposed(b))
    else:
        yield from _batches(call, a, b)


def _batches(call: FailedCall, a: Operand, b: Operand) -> Iterator[Clash]:
    """The axes before the matrices broadcast; those of `bmm` are equal."""
    found = call.match(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")
    both = operand_sizes(a)[:1] + operand_sizes(b)[:1]
    if found is None:
        said = call.match(r"of batch2 tensor to be: \[(\d+), \d+\] but got: \[(\d+), \d+\]")
        batched = len(operand_sizes(a)) == len(operand_sizes(b)) == _RANKS["bmm"]
        if said is not None and batched and both == (int(said[1]), int(said[2])):
            yield from (pair(a, 0, b, 0),) if both[0] != both[1] else ()
        return
    for axis in range(-3, -min(len(operand_sizes(a)), len(operand_sizes(b))) - 1, -1):
        if not broadcasts(operand_sizes(a)[axis], operand_sizes(b)[axis]):
            yield from mismatch_at([a, b], {int(found[1]), int(found[2])}, axis)
            return


def _summand(call: FailedCall, a: Operand, b: Operand) -> Iterator[Clash]:
    """What a product is added to broadcasts to it."""
    found, summand = call.match(EXPANDED), call.tensor(0, "input", "bias")
    if found is None or summand is None or summand in (a, b):
        return
    axis = int(found[3]) - len(sizes_in(found[4]))
    target = (*operand_sizes(a)[:-1], operand_sizes(b)[-1])
    if (operand_sizes(summand), target) == (sizes_in(found[5]), sizes_in(found[4])):
        yield pair(summand, axis, b if axis == -1 else a, axis)


def _factors(call: FailedCall) -> tuple[Operand, Operand] | None:
    """The factors of a product, of which `addmm` and the like come after a summand."""
    after = 1 if call.operation in {"addmm", "baddbmm", "addmv", "addbmm"} else 0
    a = call.tensor(after, "mat1", "batch1", "mat", "input" if not after else "mat1")
    b = call.tensor(after + 1, "mat2", "batch2", "vec", "other", "tensor")
    return (a, b) if a is not None and b is not None else None


def _transposed(b: Operand) -> tuple[Fix, ...]:
    if len(operand_sizes(b)) < _MATRIX:
        return ()
    source = f"{_bracketed(b.text)}.transpose(-2, -1)"
    return (replace(b, source, f"transpose one side, as `{source}`"),)


def _bracketed(text: str) -> str:
    """An expression that a method can be called of."""
    return f"({text})" if " " in text and not text.endswith((")", "]")) else text


@rule(r"Linear|linear|NonDynamicallyQuantizableLinear")
def linear(call: FailedCall) -> Iterator[Clash]:
    """The last axis of the input is the second of the weight."""
    given, weight = call.tensor(0, "input"), call.tensor(1, "weight")
    if (
        given is None
        or weight is None
        or not operand_sizes(given)
        or len(operand_sizes(weight)) != _MATRIX
    ):
        return
    width = operand_sizes(given)[-1]
    if width != operand_sizes(weight)[1] and call.inner_sizes() == {
        width,
        operand_sizes(weight)[1],
    }:
        module = weight_of(weight)
        fixes = (remake_module(module, in_features=width),) if module else ()
        yield pair(given, -1, weight, 1, *fixes)


@rule(r"einsum")
def einsum(call: FailedCall) -> Iterator[Clash]:
    """A letter has one size, and a term as many letters as its operand has axes."""
    equation = next((o.value for o in call.failure.operands if "'" in o.value), "").strip("'\"")
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(call.tensors):
        return
    bound: dict[str, ClashSide] = {}
    said = call.match(r"subscript (\w) has size (\d+) for operand \d+ .* seen size (\d+)")
    for term, operand in zip(terms, call.tensors, strict=True):
        before, dots, after = term.partition("...")
        letters = len(before) + len(after)
        rank = len(operand_sizes(operand))
        if letters > rank or (not dots and letters != rank):
            if call.match(r"number of subscripts|ellipsis"):
                yield ranks(operand, f"its term `{term}` {letters}")
            return
        places = [*enumerate(before), *((i - len(after), letter) for i, letter in enumerate(after))]
        for axis, letter in places:
            known = bound.setdefault(letter, ClashSide(operand, axis))
            first = operand_sizes(known.operand)[known.axis or 0]
            second = operand_sizes(operand)[axis]
            told = said is not None and letter == said[1] and {int(said[2]), int(said[3])}
            if not broadcasts(first, second) and told == {first, second}:
                clash = pair(known.operand, known.axis or 0, operand, axis)
                yield Clash(f"`{letter}` is two sizes: {clash.text}", clash.parts)


@rule(r"_?grouped_mm|scaled_grouped_mm|_?scaled_mm")
def grouped(call: FailedCall) -> Iterator[Clash]:
    """The inner axes of a grouped product agree; its factors are of the kind that it has."""
    a, b = call.tensor(0, "mat1", "input", "mat_a"), call.tensor(1, "mat2", "mat_b", "weight")
    if a is None or b is None or not operand_sizes(a) or len(operand_sizes(b)) < _MATRIX:
        return
    kind = call.match(r"Expected inputs of BF16 type but got mat_a\.dtype=torch\.(\w+) and")
    if kind is not None and a.dtype == kind[1]:
        text = f"`{a.text}` is {a.dtype}, `{b.text}` is {b.dtype}: the product takes bfloat16"
        where = " on tensors without values" if "meta" in {a.device, b.device} else ""
        way = "make the model bfloat16: `--dtype bfloat16`, or `model.to(torch.bfloat16)`"
        changed = tuple((o.text, f"{o.text}.bfloat16()") for o in (a, b))
        yield Clash(text + where, (ClashSide(a), ClashSide(b)), (Fix(way, changed),))
    if operand_sizes(a)[-1] != operand_sizes(b)[-2] and call.match(
        r"contraction dimension of \w+ and \w+ must"
    ):
        yield pair(a, -1, b, -2)
