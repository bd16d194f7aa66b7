"""The library's face: what the commands do, for Python.

Nothing here imports torch until something has to run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from shapetrace.api.transformer.choices import choose_config
from shapetrace.api.transformer.forward import forward
from shapetrace.api.transformer.generation import generate
from shapetrace.api.transformer.training import train
from shapetrace.model import ModelConfig, presets
from shapetrace.records.storage import load as read
from shapetrace.records.storage import save
from shapetrace.records.trace import Trace
from shapetrace.report.traced import Traced

if TYPE_CHECKING:
    from os import PathLike

    from shapetrace.api.annotating.annotate import annotate
    from shapetrace.api.checks.check_with import checking
    from shapetrace.api.recording import record, trace

__all__ = [
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

_LAZY = {
    "annotate": "shapetrace.api.annotating.annotate",
    "checking": "shapetrace.api.checks.check_with",
    "record": "shapetrace.api.recording",
    "trace": "shapetrace.api.recording",
}
"""By name, the module of a function that needs torch: the one place that keeps torch away."""


def __getattr__(name: str) -> object:
    """Import what needs torch at its first use."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def configs() -> dict[str, ModelConfig]:
    """Every preset's configuration, by name."""
    return {name: ModelConfig.from_preset(name) for name in presets()}


def load(path: str | PathLike[str]) -> Traced:
    """Read a trace that this version or an older one saved.

    Args:
        path: The file.

    Raises:
        ShapetraceError: If the file cannot be read or is no trace.
    """
    return Traced.of(read(path))
