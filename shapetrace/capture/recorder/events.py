"""What a recording appends to while the model runs, cheaply; `assemble` reads it after.

An event is a tuple that begins with its kind. Once repeats are written out (`repeats`),
its index in the list is its clock.
"""

from __future__ import annotations

from typing import Any

import torch

ENTER = 0
"""``(ENTER, function, module)``: function number; index of the module, its class or None."""
EXIT = 1
"""``(EXIT, function)``"""
SEE = 2
"""``(SEE, binding, element, Seen)``: the end of a statement that bound a tensor."""
SEE_ALL = 3
"""``(SEE_ALL, ((binding, element, Seen), ...))``: several tensors bound by one statement."""
MARK = 4
"""``(MARK,)``: the end of a statement that bound no tensor."""
OP = 5
"""``(OP, Plan, inputs, outputs, attributes, dtype, phase, sequence, new blocks)``"""
FREE = 6
"""``(FREE, block)``"""
FAILED_OP = 7
"""``(FAILED_OP, name, inputs)``: an operator that raised."""
REPEAT = 8
"""``(REPEAT, Template, module, blocks, end)``: what an equal call did, up to an index."""
LOST = 9
"""``(LOST,)``: a repeat turned out different; operators just before may be missing."""
HOLD = 10
"""``(HOLD, ((text, value, problem), ...))``: what the parts in braces of annotations are worth."""

Event = tuple[Any, ...]

Seen = tuple[tuple[int, ...], torch.dtype, int | None, bool, str, "torch.device | None"]
"""What is kept of a tensor: shape, dtype, block, whether it requires a gradient, layout when
it is not strided, device when it has no block."""
