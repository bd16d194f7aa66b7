"""Failures of autograd's own engine, whose messages name no line of the model.

What the message says of a tensor (its shape, the operator that made it, how often it was
changed) is looked up in the trace: the statement that made the tensor, and the one that
changed it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from shapetrace.explain.origins import place
from shapetrace.explain.rules import Clash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapetrace.records.trace import Failure, OpRecord, Shape, TensorRecord, Trace

_CHANGED = re.compile(
    r"modified by an inplace operation: \[[\w.]+ \[([\d, ]*)\]\]"
    r"(?:, which is output \d+ of (\w+?)(?:Backward\d*)?,)? is at version"
)
_INVALID = re.compile(
    r"Function (\w+?)Backward returned an invalid gradient at index (\d+) - "
    r"got \[([\d, ]*)\] but expected shape compatible with \[([\d, ]*)\]"
)
_COUNT = re.compile(
    r"function (\w+?)Backward returned an incorrect number of gradients "
    r"\(expected (\d+), got (\d+)\)"
)
_UNUSABLE = {
    "grad can be implicitly created only for scalar outputs": (
        "a backward pass starts from one number, and `{}` is more than one",
        "reduce it with `.mean()` or `.sum()`, or hand over a gradient of its shape",
    ),
    "does not require grad and does not have a grad_fn": (
        "autograd did not follow how `{}` was made",
        "run the model with gradients on and with parameters that require them, undetached",
    ),
    "backward through the graph a second time": (
        "what the first backward pass of `{}` needed has been freed",
        "run the forward pass again, or keep it: `backward(retain_graph=True)`",
    ),
}


def engine_clashes(trace: Trace, failure: Failure) -> list[Clash]:
    """What a message of autograd's engine is about; nothing for any other failure."""
    rules: tuple[Callable[[Trace, Failure], Iterator[Clash]], ...]
    rules = (_changed, _invalid, _counted, _unusable)
    return [clash for rule in rules for clash in rule(trace, failure)]


def is_of_the_engine(failure: Failure) -> bool:
    """Whether the statement that failed is a backward pass, whose operands explain nothing."""
    return failure.operation in {"backward", "grad"}


def _sizes(text: str) -> Shape:
    return tuple(int(size) for size in text.split(",") if size.strip())


def _changed(trace: Trace, failure: Failure) -> Iterator[Clash]:
    """A tensor that the backward pass needs was changed after it was used."""
    found = _CHANGED.search(failure.message)
    if found is None:
        return
    shape = _sizes(found[1])
    blocks, made_by = _needed(trace, shape, (found[2] or "").lower())
    changes = [op for op in trace.ops if _changes(op, shape)]
    sure = [(n, op, r) for n in blocks for op in changes if (r := _bound(trace, n, op))]
    whose = f"{made_by}'s" if made_by else "the"
    kept = f"and {whose} backward pass needs what it was"
    fix = "make a new tensor there instead (`x = x + y` for `x += y`), or change a `.clone()`"
    if sure:
        block, op, record = sure[0]
        name, where = _named(trace, block), _place(trace, record)
        text = f"{name} {list(shape)} is changed in place at {where} by `{_short(op)}`, {kept}"
        yield Clash(text, advice=fix)
    elif blocks and changes:
        names = " or ".join(dict.fromkeys(_named(trace, block) for block in blocks))
        how = " or ".join(dict.fromkeys(f"`{_short(op)}`" for op in changes))
        yield Clash(f"{names} {list(shape)} is changed in place by {how}, {kept}", advice=fix)


def _needed(trace: Trace, shape: Shape, maker: str) -> tuple[list[int], str]:
    """Blocks that may be meant, and the operator that made them.

    Where no operator of that name made one, as for a view of a parameter, they are those of
    every tensor with these sizes in any order.
    """
    clocks = [op.at for op in trace.ops]
    made: dict[int, str] = {}
    for number, storage in enumerate(trace.storages):
        index = bisect_left(clocks, storage.born)
        if storage.born and index < len(clocks):
            op = trace.ops[index]
            if shape in op.outputs and _plain(op) == maker:
                made[number] = _short(op)
    if made:
        return list(made), next(iter(made.values()))
    parameters = [(p.storage, p.shape) for p in trace.parameters]
    seen = [*parameters, *((r.storage, r.shape) for r in trace.tensors)]
    holding = dict.fromkeys(block for block, other in seen if sorted(other) == sorted(shape))
    return [number for number in holding if number is not None], ""


def _changes(op: OpRecord, shape: Shape) -> bool:
    """Whether an operator of the forward pass changed a tensor of these sizes in place."""
    first = op.inputs[0] if op.inputs else None
    in_place = _short(op).endswith("_") and op.phase == "forward"
    return in_place and first is not None and sorted(first) == sorted(shape)


def _bound(trace: Trace, block: int, op: OpRecord) -> TensorRecord | None:
    """The variable that a statement bound to a block after an operator of its own ran."""
    for record in trace.tensors:
        is_later = record.since <= op.at <= record.at and trace.storages[block].born < op.at
        if record.storage == block and is_later:
            return record
    return None


def _named(trace: Trace, block: int) -> str:
    """What a block's tensor is called, and where it was made."""
    for parameter in trace.parameters:
        if parameter.storage == block:
            return f"`{parameter.path}`"
    for record in trace.tensors:
        if record.storage == block and not trace.sites[record.site].internal:
            return f"`{trace.sites[record.site].name}` ({_place(trace, record)})"
    return "a tensor without a name"


def _place(trace: Trace, record: TensorRecord) -> str:
    site = trace.sites[record.site]
    return place(site.file, site.line)


def _short(op: OpRecord) -> str:
    return op.name.split(".")[1] if "." in op.name else op.name


def _plain(op: OpRecord) -> str:
    """An operator's name as autograd's classes have it: ``_softmax`` is ``SoftmaxBackward0``."""
    return _short(op).replace("_", "").lower()


def _invalid(trace: Trace, failure: Failure) -> Iterator[Clash]:
    """A custom function's backward returned a gradient of another shape than its input."""
    found = _INVALID.search(failure.message)
    if found is None:
        return
    name, index, got, wanted = found.groups()
    text = f"`{name}.backward`{_returned(trace, name)} returns [{got}] for its input {index}, which is [{wanted}]"
    fix = "return a gradient of the input's own shape: what was broadcast is summed, what was "
    yield Clash(text, advice=f"{fix}summed is expanded")


def _counted(trace: Trace, failure: Failure) -> Iterator[Clash]:
    """A custom function's backward returned more or fewer gradients than it had inputs."""
    found = _COUNT.search(failure.message)
    if found is None:
        return
    name, wanted, got = found.groups()
    text = f"`{name}.backward` returns {got} of {wanted} gradients"
    advice = "return one for each argument of `forward` after `ctx`, None for what needs none"
    yield Clash(f"{text}{_returned(trace, name)}", advice=advice)


def _returned(trace: Trace, name: str) -> str:
    """Where a custom function's backward returned, in words."""
    where = ""
    for number, scope in enumerate(trace.scopes):
        if scope.type_name == f"{name}.backward":
            returned = [r for r in trace.tensors if r.scope == number and _returns(trace, r)]
            where = f" ({_place(trace, returned[-1])})" if returned else ""
    return where


def _returns(trace: Trace, record: TensorRecord) -> bool:
    return trace.sites[record.site].kind == "return"


def _unusable(_: Trace, failure: Failure) -> Iterator[Clash]:
    """A backward pass that cannot begin."""
    for words, (text, fix) in _UNUSABLE.items():
        if words in failure.message:
            started = next((o.text for o in failure.operands if o.role in {"self", "0"}), "it")
            yield Clash(text.format(started), advice=fix)
