"""Scripted modules are seen from outside: what they are given and what they return.

Their code is no Python, so there is nothing to rewrite. Hooks tell what rewritten code would;
they are put into the modules' own tables for the length of a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from shapetrace.capture.recorder import hooks
from shapetrace.capture.source.registry import REGISTRY, BoundSite, FunctionSite
from shapetrace.capture.values import members
from shapetrace.records.trace import RecordKind, Site

_FILE = "<scripted>"
_KEY = -2
"""Of our hooks among a module's: torch gives out none below 0."""


def scripted_roots(model: nn.Module | None) -> list[tuple[str, nn.Module]]:
    """The scripted modules of a model that lie in no other scripted one, with their names."""
    inside: set[int] = set()
    found: list[tuple[str, nn.Module]] = []
    for path, module in members.named_modules(model) if model is not None else ():
        if isinstance(module, torch.jit.ScriptModule) and id(module) not in inside:
            inside.update(id(part) for part in members.modules(module))
            found.append((path, module))
    return found


class Outside:
    """Watches scripted modules from outside between `begin` and `end`."""

    def __init__(self, modules: list[nn.Module]) -> None:
        """Take the modules."""
        self._modules = [(module, _sites(module)) for module in modules]

    def begin(self) -> None:
        """Put the hooks in: last before the call, and first after it."""
        for module, sites in self._modules:
            before, after = _hooks(sites)
            earlier, later = _tables(module)
            earlier[_KEY], later[_KEY] = before, after
            later.move_to_end(_KEY, last=False)

    def end(self) -> None:
        """Take them out."""
        for module, _ in self._modules:
            for table in _tables(module):
                table.pop(_KEY, None)


def _tables(module: nn.Module) -> tuple[Any, Any]:
    """A module's hooks before and after its call, in the order in which they run."""
    return module._forward_pre_hooks, module._forward_hooks  # noqa: SLF001 - no handle to keep


class _Sites:
    """The numbers by which a scripted module's call is told."""

    def __init__(self, function: int, arguments: Mapping[str, int], returned: int) -> None:
        self.function = function
        self.arguments = dict(arguments)
        self.returned = returned


_KNOWN: dict[tuple[str, tuple[str, ...]], _Sites] = {}


def _sites(module: nn.Module) -> _Sites:
    name = str(getattr(module, "original_name", type(module).__name__))
    parameters = tuple(_parameters(module))
    known = _KNOWN.get((name, parameters))
    if known is None:
        REGISTRY.functions.append(
            FunctionSite(_FILE, 0, f"{name}.forward", "forward", internal=False)
        )
        function = len(REGISTRY.functions) - 1

        def binding(label: str, kind: RecordKind) -> int:
            site = Site(_FILE, 0, f"{name}.forward", label, kind)
            REGISTRY.bindings.append(BoundSite(site, function))
            return len(REGISTRY.bindings) - 1

        arguments = {label: binding(label, "argument") for label in parameters}
        known = _Sites(function, arguments, binding("return", "return"))
        _KNOWN[name, parameters] = known
    return known


def _parameters(module: nn.Module) -> Iterator[str]:
    schema = getattr(getattr(module, "forward", None), "schema", None)
    for argument in getattr(schema, "arguments", ())[1:]:
        yield argument.name


def _hooks(sites: _Sites) -> tuple[Callable[..., None], Callable[..., None]]:
    numbers = list(sites.arguments.values())

    def before(module: nn.Module, given: tuple[Any, ...]) -> None:
        hooks.enter(sites.function, module)
        for number, value in zip(numbers, given, strict=False):
            hooks.see(number, value)

    def after(_: nn.Module, _given: tuple[Any, ...], result: Any) -> None:
        hooks.see(sites.returned, result)
        hooks.leave(sites.function)

    return before, after
