"""Inputs that a function makes, made again at other sizes: by its own whole numbers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from shapetrace.api.tracing.trace_target import Request
    from shapetrace.capture.target.inputs import CallInputs


def other_sizes(free: Mapping[str, int]) -> list[dict[str, int]]:
    """Other sizes: all a little larger and no two alike, all doubled, then each alone."""
    if not free:
        return []
    doubled = {name: 2 * size for name, size in free.items()}
    alone = [{name: 2 * size} for name, size in free.items()] if len(free) > 1 else []
    return [distinct(free), doubled, *alone]


def distinct(sizes: Mapping[str, int]) -> dict[str, int]:
    """Each size a little larger, and no two alike: what is equal by chance shows."""
    found: dict[str, int] = {}
    for name, size in sizes.items():
        larger = size + 1
        while larger in found.values():
            larger += 1
        found[name] = larger
    return found


def remade(request: Request) -> Iterator[tuple[dict[str, int], CallInputs]]:
    """What ``--inputs file.py:make`` gives for other whole numbers than its defaults.

    Args:
        request: What is run.

    Yields:
        The numbers, and the inputs; nothing where the function takes none, or refuses them.
    """
    from shapetrace.capture.target.inputs import from_file  # noqa: PLC0415 - these need torch
    from shapetrace.capture.target.loading import load_object  # noqa: PLC0415

    text = request.inputs_file or ""
    if ".py:" not in text:
        return
    for sizes in other_sizes(_whole_numbers(load_object(text))):
        try:
            yield sizes, from_file(text, device=request.device, sizes=sizes)
        except ShapetraceError:  # no such size
            continue


def _whole_numbers(function: object) -> dict[str, int]:
    """The parameters with a whole number as their default."""
    if not callable(function):
        return {}
    parameters = inspect.signature(function).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: size for name, size in defaults.items() if type(size) is int and size > 0}
