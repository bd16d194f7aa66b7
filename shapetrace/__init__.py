"""A shape-checking tensor tracer for PyTorch."""

from __future__ import annotations

import sys
from types import ModuleType
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
    from shapetrace.trace.records import Trace

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
        from shapetrace import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those not yet imported too."""
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package's own class: `trace` and `annotate` are functions and subpackages.

    Importing the subpackage would put the module in the function's place; here it does not.
    ``from shapetrace.trace import Scope`` works as for any package.
    """

    @property
    def trace(self) -> object:
        """The function."""
        from shapetrace import api  # noqa: PLC0415

        return api.trace

    @trace.setter
    def trace(self, module: object) -> None:
        """What the import system does with the subpackage."""

    @property
    def annotate(self) -> object:
        """The function."""
        from shapetrace import api  # noqa: PLC0415

        return api.annotate

    @annotate.setter
    def annotate(self, module: object) -> None:
        """What the import system does with the subpackage."""


sys.modules[__name__].__class__ = _Package
