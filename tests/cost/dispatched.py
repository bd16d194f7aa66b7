"""Runs a function under a dispatch mode and records its operators by the attribute table."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from shapetrace.cost import ATTRIBUTES, flops, operator_of
from shapetrace.trace.records import OpRecord


def recorded(function):
    """The operators that a function ran, as `OpRecord`s in scope 0."""
    with _Recording() as mode:
        function()
    return mode.ops


def total(function):
    """FLOPs of a function; every operator that it runs must be modelled."""
    priced = [(op, flops(op)) for op in recorded(function)]
    assert not [op.name for op, cost in priced if cost is None]
    return sum(cost for _, cost in priced)


class _Recording(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self.ops.append(
            OpRecord(
                name=str(func),
                scope=0,
                at=len(self.ops) + 1,
                inputs=tuple(_inputs(func._schema, args, kwargs)),
                outputs=tuple(
                    tuple(x.shape) for x in tree_leaves(result) if isinstance(x, torch.Tensor)
                ),
                dtype="",
                attributes=tuple(_attributes(func, args, kwargs)),
            )
        )
        return result


def _bound(schema, args, kwargs):
    for position, argument in enumerate(schema.arguments):
        given = position < len(args) or argument.name in kwargs
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        yield argument, given, value


def _inputs(schema, args, kwargs):
    for argument, _, value in _bound(schema, args, kwargs):
        if isinstance(value, torch.Tensor):
            yield tuple(value.shape)
        elif isinstance(value, (list, tuple)):
            yield from (tuple(x.shape) for x in value if isinstance(x, torch.Tensor))
        elif value is None and "Optional[Tensor]" in str(argument.type):
            yield None


def _attributes(func, args, kwargs):
    wanted = ATTRIBUTES.get(operator_of(str(func)), ())
    for argument, given, value in _bound(func._schema, args, kwargs):
        if argument.name in wanted and given and value is not None:
            yield argument.name, tuple(value) if isinstance(value, list) else value
