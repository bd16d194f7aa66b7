"""A shape-checking tensor tracer for PyTorch."""

from __future__ import annotations

__version__ = "0.1.0"
