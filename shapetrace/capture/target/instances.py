"""Probing what is at hand: a model that exists, inputs that came with their values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from shapetrace.capture.target.given import check_dims, check_module
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.remake import Remake, remake
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.values import members
from shapetrace.capture.values.inner_tensors import is_packed, made_later
from shapetrace.capture.weightless.modes import makes_real_tensors

Axes = dict[int, tuple[str, ...]]
"""By identity of an input tensor, the name of each axis; empty where it has none."""

_BY_RANK = {
    1: ("B",),
    2: ("B", "n"),
    3: ("B", "n", ""),
    4: ("B", "", "H", "W"),
    5: ("B", "", "D", "H", "W"),
}
"""What the axes of an input are guessed to be; features (the last of three) are left alone."""
_FEATURES = {2: ("B", "")}


class Called(nn.Module):
    """A function as a module, for what runs modules."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Take the function."""
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self.function(*args, **kwargs)


def as_module(found: nn.Module | Callable[..., Any]) -> nn.Module:
    """A module as it is; a function as a module that calls it."""
    return found if isinstance(found, nn.Module) else Called(found)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Every module in evaluation mode; afterwards each is in its own again."""
    modes = [(module, module.training) for module in members.modules(model)]
    members.set_training(model, mode=False)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def subject_of(
    model: nn.Module, inputs: CallInputs, dims: Mapping[str, int] | None = None
) -> Subject:
    """How to run a weightless copy of a model on its inputs at other sizes.

    Args:
        model: The model, which is left as it is.
        inputs: Of the real run.
        dims: Names of input axes by size; when None, they are guessed by position. A name
            whose size no input has is a size of the model's own.
    """
    check_module(model)
    check_dims(dims)
    axes, sizes = name_axes(inputs, dims)
    given = {name: size for name, size in (dims or {}).items() if name not in sizes}
    guessed = dict.fromkeys(sizes, dims is None)
    found = remake(model)
    if found is None:
        own: Own = Own({}, lambda _: weightless_copy(model))
        loose: dict[str, int] = {}
    else:
        own = _own(model, found, sizes, guessed=dims is None)
        axes, loose = with_loose(inputs, axes)

    def arguments(new: Mapping[str, int], _: Mapping[str, int]) -> CallInputs:
        return resized_inputs(inputs, axes, new)

    return Subject(
        own.integers,
        sizes,
        own.build,
        arguments,
        rebuilt=found is not None,
        guessed=guessed,
        loose=loose,
        given=given,
        packed=is_packed(model),
    )


class Own(NamedTuple):
    """What a model is made from, by the names that expressions use, and what makes it."""

    integers: Mapping[str, int]
    build: Callable[[Mapping[str, int]], nn.Module]


def _own(model: nn.Module, found: Remake, sizes: Mapping[str, int], *, guessed: bool) -> Own:
    """How to make a copy of a live model that is in its modes and has its dtypes."""
    taken = dict.fromkeys(sizes, 0) if guessed else sizes
    names = {apart(name, size, taken): name for name, size in found.integers.items()}
    integers = {label: found.integers[name] for label, name in names.items()}
    modes = {path: module.training for path, module in members.named_modules(model)}
    dtypes = {path: tensor.dtype for path, tensor in weights(model)}
    default = torch.get_default_dtype()

    def build(given: Mapping[str, int]) -> nn.Module:
        changed = {names[label]: size for label, size in given.items() if integers[label] != size}
        if makes_real_tensors() and not changed:
            return weightless_copy(model)
        made = found.make(changed)
        for path, module in members.named_modules(made):
            module.training = modes.get(path, model.training)
        for path, tensor in weights(made):
            dtype = dtypes.get(path, default)
            if tensor.dtype != dtype:
                tensor.data = tensor.data.to(dtype)
        return made

    return Own(integers, build)


def weights(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Every parameter and buffer, by path."""
    yield from members.named_parameters(model)
    yield from members.named_buffers(model)


def with_loose(inputs: CallInputs, axes: Axes) -> tuple[Axes, dict[str, int]]:
    """Axes of the inputs with one without a name called by its place, and the sizes of those."""
    found: Axes = dict(axes)
    loose: dict[str, int] = {}
    for place, tensor in inputs.tensors():
        if id(tensor) in axes:
            named = [name or f"{place}[{axis}]" for axis, name in enumerate(axes[id(tensor)])]
            found[id(tensor)] = tuple(named)
            loose.update(
                (name, size)
                for name, old, size in zip(named, axes[id(tensor)], tensor.shape, strict=True)
                if not old
            )
    return found, loose


def apart(name: str, size: int, axes: Mapping[str, int]) -> str:
    """What an integer is called beside axes of inputs, one of which may have its name only."""
    return f"init_{name}" if axes.get(name, size) != size else name


def weightless_copy(model: nn.Module) -> nn.Module:
    """A copy whose parameters and buffers are empty tensors on the current device.

    Only weights are replaced: everything else is copied, so that running the copy changes
    nothing of the model. Where tensors hold values, its weights do too.
    """
    if makes_real_tensors():
        return copy.deepcopy(model)
    memo: dict[int, Any] = {}
    for parameter in members.parameters(model):
        memo[id(parameter)] = _empty_parameter(parameter)
    for buffer in members.buffers(model):
        kept = _made_later(buffer) if made_later(buffer) else None
        memo[id(buffer)] = torch.zeros(buffer.shape, dtype=buffer.dtype) if kept is None else kept
    return copy.deepcopy(model, memo)


def _empty_parameter(parameter: nn.Parameter) -> Any:
    if made_later(parameter):
        return _made_later(parameter, requires_grad=parameter.requires_grad)
    empty = torch.empty(parameter.shape, dtype=parameter.dtype)
    return nn.Parameter(empty, requires_grad=parameter.requires_grad)


def _made_later(tensor: torch.Tensor, **options: Any) -> Any:
    """What stands for a lazy module's parameter or buffer, to be made where it is run."""
    kind: Any = type(tensor)
    return kind(device=torch.get_default_device(), dtype=tensor.dtype, **options)


def name_axes(inputs: CallInputs, dims: Mapping[str, int] | None) -> tuple[Axes, dict[str, int]]:
    """What each axis of the inputs is called, and the sizes of the names.

    Args:
        inputs: The inputs.
        dims: Given names by size: an axis of that size has the name. Where two names have
            one size, the axis takes the one that stands at its own position among `dims`.
            None to guess by position.
    """
    axes: Axes = {}
    sizes: dict[str, int] = {}
    # What may be a mask of positions is looked at last, when the positions are known.
    for _, tensor in sorted(inputs.tensors(), key=lambda item: _is_square(item[1])):
        if tensor.layout is torch.strided and not tensor.is_nested:
            shape = tuple(tensor.shape)
            named = _guess(tensor, sizes) if dims is None else _given(shape, dims)
            axes[id(tensor)] = named
            sizes.update({name: size for name, size in zip(named, shape, strict=True) if name})
    ordered = {name: sizes[name] for name in (dims or sizes) if name in sizes}
    return axes, ordered


def _given(shape: tuple[int, ...], dims: Mapping[str, int]) -> tuple[str, ...]:
    names = list(dims)
    found = []
    for position, size in enumerate(shape):
        fitting = [name for name in names if dims[name] == size]
        own = [name for name in fitting if names.index(name) == position]
        found.append((own or fitting or [""])[0])
    return tuple(found)


def _is_square(tensor: torch.Tensor) -> bool:
    """Whether a tensor may be a mask: a square for each batch or head, or one for all."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        return False
    rank = tensor.dim()
    like_mask = rank in (2, 4) or (rank == 3 and not tensor.is_floating_point())  # noqa: PLR2004
    return like_mask and tensor.shape[-1] == tensor.shape[-2]


def _guess(tensor: torch.Tensor, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Names by position; one that means another size in an earlier input is not given."""
    rank = tensor.dim()
    n, batch = sizes.get("n"), sizes.get("B")
    if _is_square(tensor) and tensor.shape[-1] == n and n != batch:
        lead = ["B" if size == batch else "" for size in tensor.shape[:1]][: rank - 2]
        return (*lead, *[""] * (rank - 2 - len(lead)), "n", "n")
    is_features = rank == 2 and tensor.is_floating_point()  # noqa: PLR2004 - rows of features
    names = (_FEATURES if is_features else _BY_RANK).get(rank, ("B", *[""] * (rank - 1))[:rank])
    return tuple(
        name if sizes.get(name, size) == size else ""
        for name, size in zip(names, tensor.shape, strict=True)
    )


def resized_inputs(inputs: CallInputs, axes: Axes, sizes: Mapping[str, int]) -> CallInputs:
    """Inputs with every tensor's named axes at other sizes; containers are kept.

    Without values the tensors are zeros, with values the given ones over again, so that
    they stay such as the model takes.
    """
    return CallInputs(_resized(inputs.args, axes, sizes), _resized(inputs.kwargs, axes, sizes))


def _resized(value: Any, axes: Axes, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, torch.Tensor):
        if value.is_nested:
            return value
        names = axes.get(id(value), ("",) * value.dim())
        shape = [sizes.get(n, s) if n else s for n, s in zip(names, value.shape, strict=True)]
        return _repeated(value, shape) if makes_real_tensors() else _zeros(value, shape)
    if type(value) is dict:
        return {key: _resized(item, axes, sizes) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_resized(item, axes, sizes) for item in value)
    return value


def _zeros(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return torch.zeros(shape, dtype=tensor.dtype)


def _repeated(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    found = tensor.detach()
    for axis, size in enumerate(shape):
        if size != tensor.shape[axis]:
            over_again = torch.arange(size, device=tensor.device) % tensor.shape[axis]
            found = found.index_select(axis, over_again)
    return found.clone()
