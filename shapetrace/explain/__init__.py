"""Why a run failed, and why its axes are called what they are: words, from a trace alone."""

from shapetrace.explain.names import explain_names
from shapetrace.explain.text import explain

__all__ = ["explain", "explain_names"]
