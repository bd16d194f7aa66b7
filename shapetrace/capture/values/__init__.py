"""Tensors inside of values: found in containers, and the containers' own structure."""
