"""From a request to a model that can be called, and to the same at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from torch import nn

from shapetrace.api.preparing.request import Request, read_aliases
from shapetrace.api.preparing.resized_inputs import remade, resizings
from shapetrace.api.transformer.building import check_device
from shapetrace.api.transformer.choices import check_run
from shapetrace.capture.target.inputs import CallInputs, check_signature, from_file, from_specs
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.target.target import Target, resolve
from shapetrace.capture.values.inner_tensors import is_packed
from shapetrace.capture.values.members import set_training
from shapetrace.dims.specs import parse_specs
from shapetrace.errors import ShapetraceError


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model, ready to be called as a request says.

    Attributes:
        request: What was asked for.
        target: What makes the model.
        model: The model, in its mode and on its device.
        inputs: What it is called with.
        aliases: Names to use in place of others.
    """

    request: Request
    target: Target
    model: nn.Module
    inputs: CallInputs
    aliases: Mapping[str, str]

    def subject(self) -> Subject:
        """How to make and run it again at other sizes, for its names."""
        return self.target.subject(self.inputs, packed=is_packed(self.model))

    def sizes(self) -> dict[str, int]:
        """The named axes of inputs that came from specs."""
        return {} if self.inputs.specs is None else dict(self.inputs.specs.sizes)

    def at_other_sizes(self) -> Iterator[tuple[dict[str, int], CallInputs]]:
        """The inputs at other sizes, where they can be made so, with what was changed.

        Names that the model is built from keep their sizes: this is the same model.
        """
        specs = self.inputs.specs
        if specs is None:
            yield from remade(self.request.inputs_file or "", self.request.device)
            return
        fixed = frozenset(self.target.integers()) if self.target.rebuilds else frozenset()
        free = {name: size for name, size in self.sizes().items() if name not in fixed}
        for change in resizings(free):
            resized = specs.resized(change)
            yield change, from_specs(resized, device=self.request.device, seed=self.request.seed)


def prepare(request: Request, progress: Callable[[str], None] = lambda _: None) -> Prepared:
    """Make the model and the inputs of a request.

    Args:
        request: What is to be run.
        progress: Told what is going on.

    Raises:
        ShapetraceError: For a device, target, inputs or names that cannot be.
    """
    aliases = read_aliases(request.aliases)
    check_device(request.device)
    check_run(request.device, request.dtype, request.seed)
    found = resolve(request.target, request.arguments, request.hf_config)
    target = replace(found, dtype=request.dtype)
    inputs = read_inputs(request)
    progress(f"making {target.name}")
    model = target.build(device=request.device, seed=request.seed)
    set_training(model, mode=request.train)
    check_signature(model, inputs)
    return Prepared(request, target, model, inputs, aliases)


def read_inputs(request: Request) -> CallInputs:
    """What the model is called with.

    Raises:
        ShapetraceError: For specs or a file that cannot be read, or both at once.
    """
    if request.inputs_file is None:
        specs = parse_specs(request.inputs)
        return from_specs(specs, device=request.device, seed=request.seed)
    if request.inputs:
        raise ShapetraceError("give --input specs or an --inputs file, not both")
    return from_file(request.inputs_file, device=request.device)
