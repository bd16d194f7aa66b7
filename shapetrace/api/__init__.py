"""The library's face: what the commands do, for Python.

Nothing here imports torch until something has to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shapetrace.api.choosing import choose_config
from shapetrace.trace.records import Trace
from shapetrace.trace.storage import load, save

if TYPE_CHECKING:
    from shapetrace.api.one_pass import forward
    from shapetrace.capture.record import Recording
    from shapetrace.model import ModelConfig

__all__ = ["Trace", "choose_config", "configs", "forward", "load", "record", "save", "trace"]


def __getattr__(name: str) -> object:
    """Import what only some callers need at its first use."""
    if name == "forward":
        from shapetrace.api.one_pass import forward  # noqa: PLC0415

        return forward
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def configs() -> dict[str, ModelConfig]:
    """Every preset's configuration, by name."""
    from shapetrace.model import ModelConfig, presets  # noqa: PLC0415 - kept off the light path

    return {name: ModelConfig.from_preset(name) for name in presets()}


def record(model: Any, **options: Any) -> Recording:
    """Watch whatever runs inside a ``with`` block; its `trace` is there afterwards.

    Args:
        model: The module whose calls are to be named.
        options: As for `shapetrace.capture.record`.

    Example:
        >>> with record(model) as recording:
        ...     model(token_ids)
        >>> recording.trace.tensors
    """
    from shapetrace.capture.record import record as watch  # noqa: PLC0415 - needs torch

    return watch(model, **options)


def trace(model: Any, *args: Any, **kwargs: Any) -> Trace:
    """Call a model once and return the trace of the call.

    Args:
        model: The module.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    with record(model) as recording:
        model(*args, **kwargs)
    return recording.trace
