"""FLOPs of recurrent layers.

Each weight matrix meets each token once: ``2 * tokens * elements(weights)``, whatever the
kind of cell, the number of layers or the directions. What a cell does with its gates is
elementwise. Backward makes two products (of the input's and of the weight's gradient)
for each of the forward's.
Source: Hochreiter and Schmidhuber (1997) for LSTM, Cho et al. (2014) for GRU.
"""

from __future__ import annotations

from itertools import takewhile
from math import prod
from typing import TYPE_CHECKING

from shapetrace.cost.formulas.registry import attribute, formula, input_shape, multiply_adds

if TYPE_CHECKING:
    from shapetrace.records.trace import OpRecord, Shape


@formula("aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu", "aten._lstm_mps")
def layers(op: OpRecord) -> int:
    """All layers at once: input, states, then the weights; padded or packed."""
    return _tokens_times(op, [shape for shape in op.inputs[1:] if shape is not None])


@formula("aten._cudnn_rnn", "aten.miopen_rnn")
def device_layers(op: OpRecord) -> int:
    """All layers at once: input, then the weights, then the 3-d states."""
    return _tokens_times(op, _before_states(op))


@formula("aten._cudnn_rnn_backward", "aten.miopen_rnn_backward")
def device_layers_backward(op: OpRecord) -> int:
    """Their backward."""
    return 2 * _tokens_times(op, _before_states(op))


@formula("aten.mkldnn_rnn_layer")
def mkldnn_layer(op: OpRecord) -> int:
    """One layer in one direction: input, then its two weights."""
    return _tokens_times(op, [input_shape(op, 1), input_shape(op, 2)])


@formula("aten.mkldnn_rnn_layer_backward")
def mkldnn_layer_backward(op: OpRecord) -> int:
    """Its backward."""
    return 2 * mkldnn_layer(op)


@formula("aten.lstm_cell", "aten.quantized_lstm_cell")
def lstm_cell(op: OpRecord) -> int:
    """One step: input, two states, then the two weights."""
    return _tokens_times(op, [input_shape(op, 3), input_shape(op, 4)])


@formula(
    "aten.gru_cell",
    "aten.rnn_tanh_cell",
    "aten.rnn_relu_cell",
    "aten.quantized_gru_cell",
    "aten.quantized_rnn_relu_cell",
    "aten.quantized_rnn_tanh_cell",
)
def cell(op: OpRecord) -> int:
    """One step: input, one state, then the two weights."""
    return _tokens_times(op, [input_shape(op, 2), input_shape(op, 3)])


_LAYERS = ("num_layers", "bidirectional")


@formula("aten.quantized_lstm", attributes=_LAYERS)
def quantized_lstm(op: OpRecord) -> int | None:
    """All layers at once, with packed weights of four gates; input, then two 3-d states."""
    return _packed_layers(op, gates=4)


@formula("aten.quantized_gru", attributes=_LAYERS)
def quantized_gru(op: OpRecord) -> int | None:
    """The same with three gates, and one state."""
    return _packed_layers(op, gates=3)


@formula("quantized.quantized_lstm_cell_dynamic")
def quantized_lstm_cell(op: OpRecord) -> int:
    """One step with packed weights: input, then the states, which tell the width."""
    return _packed_cell(op, gates=4)


@formula("quantized.quantized_gru_cell_dynamic")
def quantized_gru_cell(op: OpRecord) -> int:
    """One step with packed weights of three gates."""
    return _packed_cell(op, gates=3)


@formula("quantized.quantized_rnn_tanh_cell_dynamic", "quantized.quantized_rnn_relu_cell_dynamic")
def quantized_cell(op: OpRecord) -> int:
    """One step with packed weights and no gates."""
    return _packed_cell(op, gates=1)


def _packed_layers(op: OpRecord, gates: int) -> int | None:
    """Input and states tell the weights: ``gates * hidden`` rows, input and hidden columns."""
    source = input_shape(op, 0)
    states = [shape for shape in op.inputs[1:] if shape is not None and len(shape) == 3]  # noqa: PLR2004
    count, both = (
        attribute(op, "num_layers"),
        1 + bool(attribute(op, "bidirectional", default=False)),
    )
    if not states or not isinstance(count, int):
        return None
    hidden = states[0][-1]
    widths = [source[-1], *[both * hidden] * (count - 1)]
    elements = sum(both * gates * hidden * (width + hidden) for width in widths)
    return multiply_adds(*source[:-1], elements)


def _packed_cell(op: OpRecord, gates: int) -> int:
    source, hidden = input_shape(op, 0), input_shape(op, 1)[-1]
    return multiply_adds(*source[:-1], gates * hidden, source[-1] + hidden)


def _tokens_times(op: OpRecord, shapes: list[Shape]) -> int:
    """Tokens of the input times the elements of every matrix among `shapes`."""
    matrices = sum(prod(shape) for shape in shapes if len(shape) == 2)  # noqa: PLR2004
    return multiply_adds(*input_shape(op, 0)[:-1], matrices)


def _before_states(op: OpRecord) -> list[Shape]:
    weights = takewhile(lambda shape: shape is not None and len(shape) < 3, op.inputs[1:])  # noqa: PLR2004
    return [shape for shape in weights if shape is not None]
