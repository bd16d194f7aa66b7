"""The command line: a thin skin over `shapetrace.api`, one file per command."""

from shapetrace.cli.app import app, main

__all__ = ["app", "main"]
