"""A shape-checking tensor tracer for PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from shapetrace.api import (
        annotate,
        checking,
        choose_config,
        configs,
        forward,
        generate,
        load,
        record,
        save,
        trace,
        train,
    )
    from shapetrace.records.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "ShapetraceError",
    "Trace",
    "annotate",
    "checking",
    "choose_config",
    "configs",
    "forward",
    "generate",
    "load",
    "record",
    "save",
    "trace",
    "train",
]


def __getattr__(name: str) -> object:
    """The library's face, imported at its first use: ``import shapetrace`` stays light."""
    if name in __all__:
        from shapetrace import api  # noqa: PLC0415 - see above

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those not yet imported too."""
    return sorted({*globals(), *__all__})
