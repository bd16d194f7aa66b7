"""Reading tensors in a way that the model's own code does not notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

_Result = TypeVar("_Result")

PLAIN = frozenset({torch.Tensor, nn.Parameter})
"""Types whose properties run no code of the user's, unless `is_overheard`."""

is_overheard: Callable[[], bool] = torch._C._is_torch_function_mode_enabled  # noqa: SLF001
"""Whether a ``TorchFunctionMode`` would be told of each property that is read now."""


def quietly(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call what reads tensors, with no ``__torch_function__`` of a mode or class being run."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the public way leaves modes on
        return function(*arguments)
