"""Columns on a screen: which there are, and how wide."""
