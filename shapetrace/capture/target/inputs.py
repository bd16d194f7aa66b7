"""What a model is called with: tensors made from specs, or read from a file."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import nn

from shapetrace.capture.target.loading import load_object
from shapetrace.capture.values.tensors_in import elements
from shapetrace.dims.specs import InputSpecs, TensorSpec, ValuePlace
from shapetrace.errors import ShapetraceError, with_article
from shapetrace.free_memory import free_memory
from shapetrace.units import format_bytes

_MOST_BYTES = 1 << 63

UNBOUND_BELOW = 2
"""Integers without a bound are 0 or 1: valid indices of nearly anything."""


@dataclass(frozen=True)
class CallInputs:
    """Arguments of one call.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
        specs: What they were made from; None when they came with their values.
    """

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    specs: InputSpecs | None = None

    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """The tensors in it, each with its place: ``[0]``, ``['ids']``, ``['batch']['mask']``."""
        return [*elements(self.args), *elements(self.kwargs)]


def from_specs(
    specs: InputSpecs, *, device: str = "cpu", seed: int = 0, weightless: bool = False
) -> CallInputs:
    """Make the inputs that specs describe.

    Floats are drawn from the normal distribution, integers evenly from 0 up to the bound
    (`UNBOUND_BELOW` where none is given), booleans are all true, as in a full mask. The
    values are the same on every device; the global random state is left alone.

    Args:
        specs: What to make.
        device: Where.
        seed: Of the values.
        weightless: Make zeros on whatever device is current, which a fake tensor mode or
            ``with torch.device("meta")`` may have set.
    """
    _check_sizes(specs, device, weightless=weightless)
    made: dict[ValuePlace, Any] = {literal.place: literal.value for literal in specs.literals}
    generator = torch.Generator().manual_seed(seed)
    for spec in specs.tensors:
        if weightless:
            made[spec.place] = torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype))
        else:
            made[spec.place] = _values(spec, device, generator)
    args, kwargs = _arranged(made)
    return CallInputs(args, kwargs, specs)


def _check_sizes(specs: InputSpecs, device: str, *, weightless: bool) -> None:
    """Refuse inputs that no machine can count, or that this one cannot hold.

    Raises:
        ShapetraceError: With the bytes, and the way out.
    """
    sizes = [(spec, prod(spec.shape) * _made_bytes(spec)) for spec in specs.tensors]
    for spec, size in sizes:
        if size >= _MOST_BYTES:
            shape = ",".join(map(str, spec.shape))
            raise ShapetraceError(f"an input of {shape} has more bytes than 64 bits can count")
    needed, free = sum(size for _, size in sizes), free_memory()
    if device != "meta" and not weightless and free is not None and needed > free:
        raise ShapetraceError(
            f"the inputs need {format_bytes(needed)}, and {format_bytes(free)} are left; use "
            "--device meta, which needs no memory, or smaller sizes"
        )


def _made_bytes(spec: TensorSpec) -> int:
    """Bytes of a number while inputs are made: integers are drawn with 64 bits."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    return 1 if dtype is torch.bool else max(4 if dtype.is_floating_point else 8, dtype.itemsize)


def _values(spec: TensorSpec, device: str, generator: torch.Generator) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if device == "meta":
        return torch.empty(spec.shape, dtype=dtype, device="meta")
    if dtype is torch.bool:
        return torch.ones(spec.shape, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.is_complex or dtype is torch.float64 else torch.float32
        return torch.randn(spec.shape, dtype=wide, generator=generator).to(device, dtype)
    below = min(spec.below or UNBOUND_BELOW, torch.iinfo(dtype).max)
    drawn = torch.randint(below, spec.shape, dtype=torch.int64, generator=generator)
    return drawn.to(device, dtype)


def _arranged(made: Mapping[ValuePlace, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Values by place as arguments: first parts that are numbers are positions."""
    tree: dict[str | int, Any] = {}
    for place, value in made.items():
        branch = tree
        for part in place[:-1]:
            branch = branch.setdefault(part, _Branch())
        branch[place[-1]] = value
    whole = {key: _collected(value) for key, value in tree.items()}
    positions = sorted(key for key in whole if isinstance(key, int))
    names = {key: value for key, value in whole.items() if isinstance(key, str)}
    return tuple(whole[position] for position in positions), names


class _Branch(dict[str | int, Any]):
    """A container that is being filled, unlike a dict that is a value."""


def _collected(value: Any) -> Any:
    if not isinstance(value, _Branch):
        return value
    if any(isinstance(key, int) for key in value):
        return [_collected(item) for _, item in sorted(value.items())]
    return {key: _collected(item) for key, item in value.items()}


def from_file(
    text: str, *, device: str = "cpu", sizes: Mapping[str, int] | None = None
) -> CallInputs:
    """Read inputs from ``file.py:make_inputs``, a ``.pt`` or a ``.safetensors`` file.

    A dict is keyword arguments, a tuple or list positional ones, ``(args, kwargs)`` both,
    anything else the only argument.

    Args:
        text: The function that makes them, or the file.
        device: Where the tensors are moved.
        sizes: Arguments of the function; none without them.

    Raises:
        ShapetraceError: For a file that is not there, cannot be read, or is a pickle that
            holds more than tensors and plain containers.
    """
    suffix = Path(text).suffix
    if suffix in {".pt", ".pth", ".safetensors"}:
        if not Path(text).is_file():
            raise ShapetraceError(f"--inputs {text}: there is no such file")
        given = _safetensors(text) if suffix == ".safetensors" else _pickled(text)
    elif ":" in text:
        given = _called(text, sizes or {})
    else:
        raise ShapetraceError(
            f"--inputs {text}: give file.py:make_inputs, a .pt file or a .safetensors file"
        )
    args, kwargs = _as_call(given)
    moved: tuple[tuple[Any, ...], dict[str, Any]] = _moved((args, kwargs), device)
    return CallInputs(*moved)


def _pickled(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickles that it then refuses
            return torch.load(text, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ShapetraceError(
            f"--inputs {text}: it holds more than tensors, numbers and plain containers, and "
            "loading that could run any code; save tensors alone, or make the inputs in a "
            "function: --inputs file.py:make_inputs"
        ) from error
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        raise ShapetraceError(
            f"--inputs {text}: not a file that torch.save wrote: {error}"
        ) from error


def _safetensors(text: str) -> Any:
    from safetensors import SafetensorError  # noqa: PLC0415 - only such a file needs it
    from safetensors.torch import load_file  # noqa: PLC0415 - as above

    try:
        return load_file(text)
    except (SafetensorError, OSError) as error:
        raise ShapetraceError(f"--inputs {text}: not a safetensors file: {error}") from error


def _called(text: str, sizes: Mapping[str, int]) -> Any:
    function = load_object(text)
    if not callable(function):
        kind = with_article(type(function).__name__)
        raise ShapetraceError(f"--inputs {text}: it is {kind}, not a function that makes inputs")
    try:
        return function(**sizes)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ShapetraceError(f"--inputs {text}: calling it raised {reason}") from error


def _as_call(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if _is_keywords(given):
        return (), dict(given)
    if isinstance(given, tuple | list):
        if len(given) == 2 and isinstance(given[0], tuple | list) and _is_keywords(given[1]):  # noqa: PLR2004 - args, kwargs
            return tuple(given[0]), dict(given[1])
        return tuple(given), {}
    return (given,), {}


def _is_keywords(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _moved(value: Any, device: str) -> Any:
    """Plain containers with their tensors moved; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if type(value) is dict:
        return {key: _moved(item, device) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_moved(item, device) for item in value)
    return value


def check_signature(model: nn.Module, inputs: CallInputs) -> None:
    """Refuse inputs that `forward` does not take.

    Raises:
        ShapetraceError: With what does not fit, and the signature.
    """
    try:
        bare = (
            type(model).forward is nn.Module.forward if hasattr(type(model), "forward") else False
        )
        signature = inspect.signature(model if bare else model.forward)  # or it only has a call
    except (TypeError, ValueError):
        return  # scripted code has none
    try:
        signature.bind(*inputs.args, **inputs.kwargs)
    except TypeError as error:
        name = type(model).__name__
        raise ShapetraceError(
            f"the inputs do not match {name}.forward: {error}; it takes {plain_signature(signature)}"
        ) from error


def plain_signature(signature: inspect.Signature) -> str:
    """A signature as people read it: names and defaults, without annotations."""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
