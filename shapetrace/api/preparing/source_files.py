"""The source files of what runs: the target's own, and those beside it in its package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from shapetrace.capture.target.loading import load_module
from shapetrace.errors import ShapetraceError
from shapetrace.installed import is_installed
from shapetrace.records.trace import Trace


def origin_file(text: str) -> str:
    """The source file that a target names.

    Raises:
        ShapetraceError: It has none.
    """
    return _source_file(load_module(text.rpartition(":")[0]), text)


def instance_file(found: object) -> str:
    """The source file of a model's class, or of a function.

    Raises:
        ShapetraceError: It has none, or it is the running script itself.
    """
    kind: Any = found if isinstance(found, FunctionType) else type(found)
    name = str(kind.__qualname__)
    if kind.__module__ == "__main__":
        raise ShapetraceError(
            f"{name} is defined in the running script, which can't be run again to prove "
            "annotations; import it from a module, or use `shapetrace annotate`"
        )
    return _source_file(sys.modules.get(kind.__module__), name)


def _source_file(module: object, name: str) -> str:
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        raise ShapetraceError(
            f"{name} has no source file: generated or compiled code can't be annotated"
        )
    return str(file)


def own_sources(traces: Sequence[Trace], origin: str) -> tuple[Path, list[str]]:
    """The folder of the target's package or file, and the files in it that ran."""
    package, _ = _folders(origin)
    found = dict.fromkeys(
        site.file for trace in traces for site in trace.sites if not site.internal
    )
    own = of_package(found, origin)
    if not found and not any(trace.tensors for trace in traces):
        raise ShapetraceError("no tensor was seen: the target runs no Python code with tensors")
    return package, own


def of_package(files: Iterable[str], origin: str) -> list[str]:
    """Those of some files that belong to the package, or the folder, of a file."""
    package, inside = _folders(origin)
    own = [file for file in files if Path(file).resolve().is_relative_to(inside)]
    return [file for file in own if inside != package or not _installed(Path(file), package)]


def _folders(origin: str) -> tuple[Path, Path]:
    """The folder that a file's package lies in, and the package; else the file's folder twice."""
    first = Path(origin).resolve()
    package = first.parent
    while (package / "__init__.py").exists():
        package = package.parent
    top = first.relative_to(package).parts[0]
    return package, package / top if (package / top).is_dir() else package


def _installed(file: Path, package: Path) -> bool:
    return is_installed(str(file.resolve().relative_to(package)))
