"""A model that can be made and run again at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from shapetrace.capture.target.calling import call_model
from shapetrace.capture.target.inputs import CallInputs


@dataclass(frozen=True)
class Subject:
    """How to make a model and its inputs at given sizes.

    Attributes:
        integers: The integers that the model is built from (constructor arguments, fields
            of a configuration), by name, at the values of the real run.
        dims: The named sizes of the inputs, at the values of the real run.
        guessed: For each of `dims`, whether its name was only guessed.
        build: Makes the model from integers, on whatever device is current.
        arguments: Makes the inputs from dims (and the integers, which may bound the ids).
        run: Runs a model on arguments; a plain call by default.
        rebuilt: Whether `build` honours other integers; if not, only the inputs are scaled.
        tied: Of integers that must keep a ratio (a head count and the groups that divide
            it), which others are scaled along with each.
        loose: Sizes of the inputs' axes that have no name, by their places; `arguments`
            honours other sizes for them too.
        given: Sizes that the user named and no input has: the model's own.
        packed: Whether the model holds packed weights, as quantised ones do: torch's own code
            for them reads and writes outside of memory where tensors have no values.
    """

    integers: Mapping[str, int]
    dims: Mapping[str, int]
    build: Callable[[Mapping[str, int]], nn.Module]
    arguments: Callable[[Mapping[str, int], Mapping[str, int]], CallInputs]
    run: Callable[[nn.Module, CallInputs], Any] = call_model
    rebuilt: bool = True
    guessed: Mapping[str, bool] = field(default_factory=dict)
    loose: Mapping[str, int] = field(default_factory=dict)
    tied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    packed: bool = False
