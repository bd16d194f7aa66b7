"""Runs that only show sizes: no weights, and each operator worked out once."""
