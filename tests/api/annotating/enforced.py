"""Import files from a folder, their annotations enforced where asked for, and forget them."""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path

import jaxtyping


@contextlib.contextmanager
def imported(folder, name, enforced=(), checker="beartype.beartype"):
    """A folder's module, for the length of a block.

    Args:
        folder: Where it is, and the modules beside it that it imports.
        name: Its name.
        enforced: Names of the modules whose annotations are enforced.
        checker: The type checker that enforces them.
    """
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    hook = jaxtyping.install_import_hook(list(enforced), checker) if enforced else None
    try:
        with forgetting(folder), hook or contextlib.nullcontext():
            yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


@contextlib.contextmanager
def forgetting(folder):
    """Forget, at the end of a block, the modules of a folder that were imported in it."""
    known = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder):
                del sys.modules[name]
