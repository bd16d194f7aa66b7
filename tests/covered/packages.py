"""Packages of models that nobody here wrote, where they are installed.

They lie in a folder of their own (`make models`), which only these tests look into: some of
them change what transformers imports, or come with a torch that is not wanted.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest
import torch

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_folder = Path(sys.prefix) / "models/site-packages"
_libraries = []

if _folder.is_dir() and str(_folder) not in sys.path:
    sys.path.append(str(_folder))

_spec = importlib.util.find_spec("torchvision")
if _spec is not None and str(_spec.origin).startswith(str(_folder)):
    # Beside a CPU build of torch, torchvision's compiled operators do not load, and without
    # them it does not import. The models here use none of them: declared, they need not exist.
    _libraries.append(torch.library.Library("torchvision", "FRAGMENT"))
    for schema in _OPERATORS:
        _libraries[0].define(schema)


def needs(package: str) -> None:
    """Skip the test, with the reason, where a package can't be imported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(package)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being imported
        pytest.skip(f"{package} cannot be imported: {type(error).__name__}: {error}")
