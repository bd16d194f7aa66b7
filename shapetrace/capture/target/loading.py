"""Find what ``package.module:Class`` or ``path/to/file.py:thing`` means."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from shapetrace.errors import ShapetraceError, did_you_mean, nearest

_FORM = "package.module:Class or path/to/file.py:thing"


def load_object(text: str) -> Any:
    """Import a module or a file and take the object that is named after the colon.

    Args:
        text: ``package.module:Class``, ``path/to/file.py:factory``, with dots for what
            lies inside (``module:Outer.Inner``).

    Raises:
        ShapetraceError: For another form, a module that cannot be imported (with its own
            error as the cause), or a name that is not there (with the nearest).
    """
    if text.partition(":")[0].endswith(".ipynb"):
        raise ShapetraceError(
            f"{text} is a notebook, which cannot be imported: call shapetrace.trace(model, x) in "
            "it, or put the model into a .py file (jupyter nbconvert --to script writes one)"
        )
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise ShapetraceError(f"{text!r} names no object; write {_FORM}")
    module = load_module(where)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            _refuse_name(where, part, found)
        found = getattr(found, part)
    return found


def load_module(where: str) -> ModuleType:
    """Import a module by its dotted name or by its file.

    The current folder can be imported from, as under ``python -m``; so can the folder of
    a file, as when it is run as a script.

    Raises:
        ShapetraceError: If there is no such module or file, or its own code fails.
    """
    is_file = where.endswith(".py") or "/" in where
    if is_file:
        path = Path(where)
        if not path.is_file():
            raise ShapetraceError(f"there is no file {where}; a target is {_FORM}")
        _importable(path.resolve().parent)
        with _explained(where):
            return _executed(path.resolve())
    _importable(Path.cwd())
    with _explained(where):
        return importlib.import_module(where)


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _executed(path: Path) -> ModuleType:
    """The module of a file, under the name by which its neighbours import it where it is free."""
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    name = path.stem if known is None else f"shapetrace_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn whatever a module's code raises into one line that keeps its text."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        place = f"{error.filename}:{error.lineno}"
        raise ShapetraceError(f"cannot import {where}: {place}: {error.msg}") from error
    except SystemExit as error:
        raise ShapetraceError(
            f"cannot import {where}: it calls sys.exit({error.code!r}) when imported; "
            "put that under `if __name__ == '__main__'`"
        ) from error
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
        raise ShapetraceError(f"cannot import {where}: {reason}{_hint(where, error)}") from error


def _hint(where: str, error: BaseException) -> str:
    if where.endswith(".py") and "attempted relative import" in str(error):
        return "; it is part of a package: from the folder above, write package.module:Class"
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is None:
        return "; the error is its own (--debug shows where)"
    if where == missing or where.startswith(f"{missing}."):
        return "; is it installed in this environment, or meant as a file (path/to/file.py:thing)?"
    return f"; install {missing.partition('.')[0]} in this environment"


def _refuse_name(where: str, name: str, owner: Any) -> NoReturn:
    known = [known for known in dir(owner) if not known.startswith("_")]
    hint = did_you_mean(name, known) if nearest(name, known) else f"it has {_some(known)}"
    raise ShapetraceError(f"{where} has no {name!r}: {hint}")


def _some(names: list[str], limit: int = 8) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "nothing") + more
