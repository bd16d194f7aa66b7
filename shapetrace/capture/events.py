"""What a recording appends to while the model runs, cheaply; `assemble` reads it after.

An event is a tuple that begins with its kind. Its index in the list is its clock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
"""``(OP, Plan, inputs, outputs, attributes, nbytes, dtype, phase, sequence)``"""
FREE = 6
"""``(FREE, storage)``"""
FAILED_OP = 7
"""``(FAILED_OP, name, inputs)``: an operator that raised."""

Event = tuple[Any, ...]


class Seen(NamedTuple):
    """What is kept of a tensor: no reference to it."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    nbytes: int
    storage: int | None
    requires_grad: bool
    layout: str
