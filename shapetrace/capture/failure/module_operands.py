"""What went into a call of one of torch's modules, which may hold the one that failed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from shapetrace.capture.failure.frame_reader import FrameReader, hidden
from shapetrace.capture.failure.traceback import FramePlace, first_assignment
from shapetrace.capture.values import members
from shapetrace.capture.values.tensors_in import elements
from shapetrace.records.trace import Operand

_PARAMETERS = (
    *("weight", "bias"),
    *("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"),  # attention
    *("weight_ih_l0", "weight_hh_l0", "weight_ih", "weight_hh"),  # recurrent layers and cells
)
"""Parameters of torch's modules that a clash can be with."""


class ModuleOperands:
    """Reads calls of modules in one frame."""

    def __init__(self, reader: FrameReader, inner: list[FramePlace]) -> None:
        """Take the frame.

        Args:
            reader: Reads it.
            inner: The frames below it, outermost first.
        """
        self._reader = reader
        self._inner = inner

    def of(self, node: ast.Call, module: nn.Module, failed: nn.Module) -> Iterator[Operand]:
        """What went into a call.

        Args:
            node: The call.
            module: The module that was called.
            failed: The module that failed: it, or one inside it.
        """
        name, made = ast.unparse(node.func), self._made(node.func)
        outer = dict(self._arguments(node, module))
        given = _bound(self._inner, failed)
        if failed is module and all(role in outer for role in given):
            for role, (part, value) in outer.items():
                yield from self._reader.written(part, role, given.get(role, value))
        else:
            name = _inside(name, module, failed)
            for number, (role, value) in enumerate(given.items()):
                what = f"{'input' if not number else role} of {name}"
                for path, tensor in elements(value):
                    text = self._known(tensor, outer) or what + path
                    yield self._reader.tensor(text, role, tensor)
        first = getattr(failed, "batch_first", None)
        if isinstance(first, bool):
            yield hidden("batch_first", first)
        yield from self._weights(name, failed, made)

    def _arguments(
        self, node: ast.Call, module: nn.Module
    ) -> Iterator[tuple[str, tuple[ast.expr, Any]]]:
        """The arguments of a call as written, by the parameters that they are for."""
        names = _parameters(module)
        given = _bound(self._inner, module)
        for number, part in enumerate(node.args):
            if number < len(names) and not isinstance(part, ast.Starred):
                yield names[number], (part, given.get(names[number]))
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, (keyword.value, given.get(keyword.arg))

    def _known(self, tensor: torch.Tensor, outer: Mapping[str, tuple[ast.expr, Any]]) -> str:
        """The argument, as written, that a tensor further in is."""
        for part, value in outer.values():
            for path, item in elements(value):
                same = item is tensor or (
                    item.shape == tensor.shape
                    and item.stride() == tensor.stride()
                    and self._reader.storage_of(item) is not None
                    and self._reader.storage_of(item) == self._reader.storage_of(tensor)
                )
                if same:
                    return ast.unparse(part) + path
        return ""

    def _weights(self, name: str, module: nn.Module, made: tuple[str, int]) -> Iterator[Operand]:
        described = f"{type(module).__name__}({module.extra_repr()})"
        tensors = dict(members.own_parameters(module))
        shown = [key for key in _PARAMETERS if key in tensors]
        yield Operand(name, "module", value=described, file=made[0], line=made[1])
        for key in shown:
            yield self._reader.tensor(f"{name}.{key}", key, tensors[key], made)

    def _made(self, node: ast.expr) -> tuple[str, int]:
        """Where the attribute that holds a module was set."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Attribute):
            return "", 0
        owner = self._reader.worth(node.value)
        for kind in type(owner).__mro__ if isinstance(owner, nn.Module) else ():
            found = first_assignment(kind, node.attr)
            if found is not None:
                return found
        return "", 0


def _inside(name: str, module: nn.Module, failed: nn.Module) -> str:
    """What a module is called that another holds, of which the name is known."""
    if failed is module:
        return name
    path = {id(part): path for path, part in members.named_modules(module)}.get(id(failed))
    path = path or type(failed).__name__
    return name + re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", f".{path}")


def _parameters(module: nn.Module) -> list[str]:
    """The names of the parameters of a module's forward."""
    code = getattr(type(module).forward, "__code__", None)
    names = list(code.co_varnames[1 : code.co_argcount]) if code is not None else []
    return ["input" if name == "x" else name for name in names]


def _bound(inner: list[FramePlace], module: nn.Module) -> dict[str, Any]:
    """What a module was called with, by parameter, as its caller gave it."""
    for place in reversed(inner):
        held = place.frame.f_locals
        if place.frame.f_code.co_name == "_call_impl" and held.get("self") is module:
            names = _parameters(module)
            return {**dict(zip(names, held["args"], strict=False)), **held["kwargs"]}
    return {}
