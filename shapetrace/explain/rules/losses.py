"""Losses: what they compare, and on which axis the classes lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.broadcasting import mismatch
from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    Fix,
    axes,
    axis_is,
    operand_sizes,
    pair,
    ranks,
    replace,
)
from shapetrace.explain.rules.lookups import span
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand

_CLASSES = r"cross_entropy|nll_loss|CrossEntropyLoss|NLLLoss(2d)?"
_EACH = (
    r"(mse|l1|smooth_l1|huber|binary_cross_entropy(_with_logits)?|kl_div|poisson_nll|gaussian_nll"
    r"|soft_margin|hinge_embedding|margin_ranking|triplet_margin|cosine_embedding)(_loss)?"
    r"|\w+Loss"
)


@rule(_CLASSES)
def classes(call: FailedCall) -> Iterator[Clash]:
    """Logits ``N C ...`` against class numbers ``N ...`` (torch.nn.CrossEntropyLoss)."""
    logits, target = call.tensor(0, "input"), call.tensor(1, "target")
    if logits is None or target is None:
        return
    yield from _class_axis(call, logits, target)
    yield from _target_rank(call, logits, target)
    batch = call.match(r"input batch_size \((\d+)\) to match target batch_size \((\d+)\)")
    first = operand_sizes(logits)[:1] + operand_sizes(target)[:1]
    if batch is not None and first == (int(batch[1]), int(batch[2])):
        yield pair(logits, 0, target, 0)
    beyond = call.match(r"Target (-?\d+) is out of bounds")
    held = span(target)
    known = beyond is not None and held is not None and len(operand_sizes(logits)) > 1
    if known and held is not None and (held[1] >= operand_sizes(logits)[1] or held[0] < 0):
        text = f"`{target.text}` holds {target.value}, {axis_is(logits, 1)} (classes)"
        yield Clash(text, (ClashSide(target), ClashSide(logits, 1)))
    weight = call.match(r"all (\d+) classes .* weight tensor of shape: \[(\d+)\]")
    given = call.tensor(2, "weight")
    if weight is None or given is None:
        return
    if operand_sizes(logits)[1:2] + operand_sizes(given) == (int(weight[1]), int(weight[2])):
        yield pair(logits, 1, given, 0)


def _class_axis(call: FailedCall, logits: Operand, target: Operand) -> Iterator[Clash]:
    """Sizes after the batch that are not those after the classes."""
    found = call.match(r"Expected target size \[([\d, ]*)\], got \[([\d, ]*)\]")
    both = call.match(r"got input: \[([\d, ]*)\] , target: \[([\d, ]*)\]")
    if found is None and (
        both is None
        or (operand_sizes(logits), operand_sizes(target)) != (sizes_in(both[1]), sizes_in(both[2]))
    ):
        return
    if found is not None and (
        operand_sizes(target) != sizes_in(found[2])
        or (operand_sizes(logits)[:1] + operand_sizes(logits)[2:]) != sizes_in(found[1])
    ):
        return
    rank = len(operand_sizes(logits))
    moved = (*operand_sizes(logits)[:1], *operand_sizes(logits)[1:-1])
    last = moved == operand_sizes(target) and rank > 2  # noqa: PLR2004 - batch, classes and more
    fixes: tuple[Fix, ...] = ()
    note = ""
    if last:
        order = ", ".join(map(str, (0, rank - 1, *range(1, rank - 1))))
        source = f"{logits.text}.transpose(1, 2)" if rank == 3 else ""  # noqa: PLR2004
        source = source or f"{logits.text}.permute({order})"
        fixes = (replace(logits, source),)
        note = "; classes belong on axis 1"
    for axis in range(1, len(operand_sizes(target))):
        if axis + 1 < rank and operand_sizes(logits)[axis + 1] != operand_sizes(target)[axis]:
            yield pair(logits, axis + 1, target, axis, *fixes, note=note)
            return


def _target_rank(call: FailedCall, logits: Operand, target: Operand) -> Iterator[Clash]:
    """Class numbers with an axis too many."""
    rank, have = len(operand_sizes(logits)), len(operand_sizes(target))
    flat = call.match(r"0D or 1D target tensor expected")
    spatial = call.match(r"only batches of spatial targets supported \(3D tensors\)")
    wanted = 1 if flat is not None else 3
    if (flat is None and spatial is None) or have == wanted or rank != wanted + 1:
        return
    if "float" in target.dtype:
        return  # meant as probabilities, of which torch says nothing here
    fixes: tuple[Fix, ...] = ()
    if have == rank and operand_sizes(target)[1] == 1:
        fixes = (replace(target, f"{target.text}.squeeze(1)"),)
    yield ranks(target, f"class numbers for {axes(rank)} of `{logits.text}` have {wanted}", *fixes)


@rule(_EACH)
def elementwise(call: FailedCall) -> Iterator[Clash]:
    """Input and target have the same sizes."""
    given, target = call.tensor(0, "input"), call.tensor(1, "target")
    same = call.match(r"size \(torch\.Size\(\[([\d, ]*)\]\)\).* size \(torch\.Size\(\[([\d, ]*)\]")
    if given is not None and target is not None and same is not None:
        if (operand_sizes(target), operand_sizes(given)) == (sizes_in(same[1]), sizes_in(same[2])):
            yield from _different(given, target)
        return
    found = call.match(
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
        r" at non-singleton dimension (\d+)"
    )
    if found is not None:
        a, b, dimension = map(int, found.groups())
        yield from mismatch(call.tensors, {a, b}, dimension)


def _different(given: Operand, target: Operand) -> Iterator[Clash]:
    a, b = operand_sizes(given), operand_sizes(target)
    if len(a) == len(b):
        for axis, (left, right) in enumerate(zip(a, b, strict=True)):
            if left != right:
                yield pair(given, axis, target, axis)
                return
    longer, shorter = (given, target) if len(a) > len(b) else (target, given)
    more = len(operand_sizes(longer)) - len(operand_sizes(shorter))
    ones = [axis for axis, size in enumerate(operand_sizes(longer)) if size == 1]
    rest = tuple(size for size in operand_sizes(longer) if size != 1)
    fixes: tuple[Fix, ...] = ()
    note = ""
    if len(ones) == more == 1 and rest == operand_sizes(shorter):
        fixes = (replace(longer, f"{longer.text}.squeeze({ones[0] - len(operand_sizes(longer))})"),)
        note = f", one of them (axis {ones[0]}) of size 1"
    text = f"`{longer.text}` has {axes(len(operand_sizes(longer)))}{note}, `{shorter.text}` has "
    yield Clash(
        f"{text}{len(operand_sizes(shorter))}", (ClashSide(longer), ClashSide(shorter)), fixes
    )


@rule(r"ctc_loss|CTCLoss")
def ctc(call: FailedCall) -> Iterator[Clash]:
    """Lengths lie within ``T`` of the scores ``T N C`` and ``S`` of the targets ``N S``."""
    scores, targets = call.tensor(0, "log_probs"), call.tensor(1, "targets")
    lengths = call.tensor(2, "input_lengths")
    at_most = call.match(r"input_lengths to have value at most (\d+), but got value (\d+)")
    if scores is None or not operand_sizes(scores):
        return
    if at_most is not None and lengths is not None and operand_sizes(scores)[0] == int(at_most[1]):
        text = f"`{lengths.text}` holds {lengths.value}, {axis_is(scores, 0)}"
        yield Clash(text, (ClashSide(lengths), ClashSide(scores, 0)))
    batch = call.match(r"to have size (\d+) at dimension 0, but got size (\d+) for argument #2")
    of_both = operand_sizes(scores)[1:2] + operand_sizes(targets or scores)[:1]
    if batch is not None and targets is not None and of_both == (int(batch[1]), int(batch[2])):
        yield pair(scores, 1, targets, 0)
    for name, position in (("input_lengths", 2), ("target_lengths", 3)):
        given = call.tensor(position, name)
        said = f"{name} must be of size batch_size" in call.message
        if said and given is not None and operand_sizes(given) and len(operand_sizes(scores)) > 2:  # noqa: PLR2004
            yield pair(given, 0, scores, 1)
