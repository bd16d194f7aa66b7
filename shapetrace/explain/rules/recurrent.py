"""Recurrent layers and cells: their inputs and states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import (
    Clash,
    ClashSide,
    Fix,
    axis_is,
    operand_sizes,
    pair,
    ranks,
    remake_module,
)
from shapetrace.explain.rules.registry import FailedCall, rule, sizes_in, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand

_BATCHED = 3


@rule(r"LSTM|GRU|RNN|(LSTM|GRU|RNN)Cell")
def width(call: FailedCall) -> Iterator[Clash]:
    """The input's last axis is the layer's input size."""
    given = call.tensor(0, "input")
    weight = call.tensor(-9, "weight_ih_l0", "weight_ih")
    said = call.match(r"input_size\. Expected (\d+), got (\d+)")
    cell = call.match(r"inconsistent input_size: got (\d+),? expected (\d+)")
    if given is None or weight is None or not operand_sizes(given):
        return
    wanted = (int(said[1]), int(said[2])) if said else (int(cell[2]), int(cell[1])) if cell else ()
    if wanted == (operand_sizes(weight)[1], operand_sizes(given)[-1]):
        module = weight_of(weight)
        fixes = (remake_module(module, input_size=operand_sizes(given)[-1]),) if module else ()
        yield pair(given, -1, weight, 1, *fixes)


@rule(r"LSTM|GRU|RNN|(LSTM|GRU|RNN)Cell")
def rank(call: FailedCall) -> Iterator[Clash]:
    """Inputs are sequences with or without a batch, states likewise."""
    given = call.tensor(0, "input")
    found = call.match(r"Expected input to be (\d)D or (\d)D, got (\d)D")
    if given is not None and found is not None and len(operand_sizes(given)) == int(found[3]):
        yield ranks(given, f"`{call.operation}` takes {found[1]} or {found[2]}")
    states = [operand for operand in call.tensors if operand.role == "hx"]
    said = call.match(r"hx (?:and cx )?should also be (\d)-D")
    if said is not None and given is not None:
        wrong = [state for state in states if len(operand_sizes(state)) != int(said[1])]
        if wrong:
            yield ranks(wrong[0], f"{said[1]} are wanted, as `{given.text}` has")


@rule(r"LSTM|GRU|RNN")
def state(call: FailedCall) -> Iterator[Clash]:
    """A state is ``layers*directions, batch, hidden``, also with ``batch_first``."""
    given = call.tensor(0, "input")
    states = [operand for operand in call.tensors if operand.role == "hx"]
    found = call.match(r"Expected hidden(?:\[(\d)\])? size \(([\d, ]*)\), got \[([\d, ]*)\]")
    if given is None or found is None or int(found[1] or 0) >= len(states):
        return
    held = states[int(found[1] or 0)]
    wanted, got = sizes_in(found[2]), sizes_in(found[3])
    if operand_sizes(held) != got or len(wanted) != len(got):
        return
    for axis, (size, other) in enumerate(zip(got, wanted, strict=True)):
        if size == other:
            continue
        if axis == 1 and len(got) == _BATCHED:
            yield from _batch(call, given, held, other)
        else:
            what = "num_layers * directions" if axis == 0 else "the hidden size"
            yield Clash(
                f"{axis_is(held, axis)}, wanted is {other}, {what}", (ClashSide(held, axis),)
            )
        return


def _batch(call: FailedCall, given: Operand, held: Operand, wanted: int) -> Iterator[Clash]:
    """The state's batch, which is another axis of the input than with ``batch_first``."""
    first = call.setting("batch_first") == "True"
    axis = 0 if first else 1
    if len(operand_sizes(given)) != _BATCHED or operand_sizes(given)[axis] != wanted:
        return
    fixes: tuple[Fix, ...] = ()
    module = call.module
    if not first and operand_sizes(given)[0] == operand_sizes(held)[1] and module is not None:
        fixes = (remake_module(module.text, batch_first=True),)
    note = f" (the batch, with{'' if first else 'out'} batch_first)"
    yield pair(held, 1, given, axis, *fixes, note=note)


@rule(r"(LSTM|GRU|RNN)Cell")
def cell_state(call: FailedCall) -> Iterator[Clash]:
    """A cell's state is ``batch, hidden``."""
    given = call.tensor(0, "input")
    states = [operand for operand in call.tensors if operand.role == "hx"]
    hidden = call.match(r"hidden(\d) has inconsistent hidden_size: got (\d+), expected (\d+)")
    batch = call.match(r"Input batch size (\d+) doesn't match hidden(\d) batch size (\d+)")
    if hidden is not None and int(hidden[1]) < len(states):
        held = states[int(hidden[1])]
        if operand_sizes(held) and operand_sizes(held)[-1] == int(hidden[2]):
            end = len(operand_sizes(held)) - 1
            text = f"{axis_is(held, end)}, wanted is {hidden[3]}, the hidden size"
            yield Clash(text, (ClashSide(held, end),))
    if batch is not None and given is not None and int(batch[2]) < len(states):
        held = states[int(batch[2])]
        if (operand_sizes(given)[:1], operand_sizes(held)[:1]) == (
            (int(batch[1]),),
            (int(batch[3]),),
        ):
            yield pair(held, 0, given, 0, note=" (the batch)")


@rule(r"pack_padded_sequence")
def packed(call: FailedCall) -> Iterator[Clash]:
    """There is one length per sample."""
    given, lengths = call.tensor(0, "input"), call.tensor(1, "lengths")
    found = call.match(r"equal to batch_size, but got (\d+) \(batch_size=(\d+)\)")
    first = call.at(2, "batch_first")
    axis = 0 if first is not None and first.value == "True" else 1
    if given is None or lengths is None or found is None or len(operand_sizes(given)) <= axis:
        return
    if (operand_sizes(lengths), operand_sizes(given)[axis]) == ((int(found[1]),), int(found[2])):
        yield pair(lengths, 0, given, axis, note=" (the batch)")
