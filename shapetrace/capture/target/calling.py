"""The one way to call a user's model, which may do anything."""

from __future__ import annotations

import os
from typing import Any

from torch import nn

from shapetrace.capture.target.inputs import CallInputs


def call_model(model: nn.Module, inputs: CallInputs) -> Any:
    """Call a model that may leave the process or split it in two.

    Args:
        model: The model.
        inputs: What it is called with.

    Raises:
        RuntimeError: In place of the `SystemExit` of a model that calls `sys.exit`.
        Exception: What the model raises.
    """
    process = os.getpid()
    try:
        return model(*inputs.args, **inputs.kwargs)
    except SystemExit as error:
        raise RuntimeError(f"the model calls sys.exit({error.code!r})") from error
    finally:
        if os.getpid() != process:
            os._exit(0)  # a child that the model forked: only the parent goes on
