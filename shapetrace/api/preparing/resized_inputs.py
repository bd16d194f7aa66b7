"""Inputs at other sizes: which, and how a function that makes them is asked for them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from shapetrace.capture.target.inputs import CallInputs, from_file
from shapetrace.capture.target.loading import load_object
from shapetrace.errors import ShapetraceError


def resizings(free: Mapping[str, int]) -> list[dict[str, int]]:
    """Other sizes: all larger and no two alike, in either order; all doubled; each doubled alone.

    The greatest becomes the least once: an axis may be the lesser of two.
    """
    if not free:
        return []
    larger = _distinct(free)
    doubled = {name: 2 * size for name, size in free.items()}
    if len(free) == 1:
        return [larger, doubled]
    ranked = sorted(larger, key=lambda name: larger[name])
    turned = dict(zip(ranked, sorted(larger.values(), reverse=True), strict=True))
    return [larger, turned, doubled, *({name: size} for name, size in doubled.items())]


def _distinct(sizes: Mapping[str, int]) -> dict[str, int]:
    """Each size a little larger, and no two alike: what is equal by chance shows."""
    found: dict[str, int] = {}
    for name, size in sizes.items():
        larger = size + 1
        while larger in found.values():
            larger += 1
        found[name] = larger
    return found


def remade(text: str, device: str) -> Iterator[tuple[dict[str, int], CallInputs]]:
    """What ``--inputs file.py:make`` gives for other whole numbers than its defaults.

    Args:
        text: The function that makes the inputs, or a file that holds them.
        device: Where the tensors are moved.

    Yields:
        The numbers, and the inputs; nothing where the function takes none, or refuses them.
    """
    if ".py:" not in text:
        return
    for sizes in resizings(_whole_numbers(load_object(text))):
        try:
            yield sizes, from_file(text, device=device, sizes=sizes)
        except ShapetraceError:  # no such size
            continue


def _whole_numbers(function: object) -> dict[str, int]:
    """The parameters with a whole number as their default."""
    if not callable(function):
        return {}
    parameters = inspect.signature(function).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: size for name, size in defaults.items() if type(size) is int and size > 0}
