"""The calls of a run as scopes: which module or function each is of, and its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from torch import nn

from shapetrace.capture.source.braces import Held
from shapetrace.capture.source.registry import REGISTRY
from shapetrace.capture.values import members
from shapetrace.records.trace import Scope, ScopeKind


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """A module of the traced model: all its dotted names, and its class."""

    names: tuple[str, ...]
    type_name: str


def module_names(model: nn.Module | None) -> tuple[list[ModuleNames], dict[int, int]]:
    """Every module's names (a shared one has several), and its number by identity."""
    names: dict[int, list[str]] = {}
    types: dict[int, str] = {}
    for name, module in (
        members.named_modules(model, remove_duplicate=False) if model is not None else ()
    ):
        names.setdefault(id(module), []).append(name)
        types[id(module)] = type(module).__qualname__
    listed = [ModuleNames(tuple(paths), types[key]) for key, paths in names.items()]
    return listed, {key: number for number, key in enumerate(names)}


@dataclass(slots=True)
class Frame:
    """A call that is running.

    Attributes:
        function: Number of its function.
        module: The module whose code runs: its index, its class outside the model, or None.
        path: The scope's path.
        kind: What it is taken for.
        type_name: Class or function.
        start: Clock at which it began.
        last: Clock at the end of its last statement.
        stands_in: Whether it is taken for the module's own call though no forward runs.
        scope: Index of its scope; -1 as long as nothing has happened in it.
        held: What the parts in braces of its annotations are worth.
    """

    function: int
    module: int | str | None
    path: str
    kind: ScopeKind
    type_name: str
    start: int
    last: int
    stands_in: bool = False
    scope: int = -1
    held: Held | None = None


class Calls:
    """The calls that are running, and a scope for each in which something happened.

    A call gets its scope with the first tensor or operator in it, after those around it: so
    scopes are in order of entry, and calls that did nothing leave none.

    Attributes:
        now: The innermost call that is running.
        scopes: A scope for each call that did something.
        functions: The number of each such call's function.
        held: By such call, what the parts in braces of its annotations are worth.
    """

    def __init__(
        self, modules: Sequence[ModuleNames], target: str, length: int, *, whole: bool = False
    ) -> None:
        """Begin with the root.

        Args:
            modules: The model's modules, by the index that events carry.
            target: What the run is called.
            length: Clock at the end of the run.
            whole: Whether calls in which nothing happens get scopes too.
        """
        self.scopes = [
            Scope(
                parent=None,
                path="",
                kind="function",
                type_name=target,
                file="",
                line=0,
                start=0,
                end=length,
            )
        ]
        self.functions = [-1]
        self.held: dict[int, Held] = {}
        self._modules = modules
        self._length = length
        self._whole = whole
        self.now = Frame(
            function=-1,
            module=None,
            path="",
            kind="function",
            type_name=target,
            start=0,
            last=0,
            scope=0,
        )
        self._frames = [self.now]

    def enter(self, clock: int, function: int, module: int | str | None) -> None:
        """A function begins, called on a module or not."""
        site = REGISTRY.functions[function]
        is_forward = site.name == "forward"
        is_module = is_forward and module is not None and self._demoted(module)
        if module is not None and module != self.now.module:
            is_module = is_forward or _is_free(site.qualname)
        if is_module:
            path, type_name = self._as_module(module)
        else:
            path = f"{self.now.path}.{site.name}()".lstrip(".")
            type_name = _plain(site.qualname)
        kind: ScopeKind = "module" if is_module else "function"
        owner = module if module is not None else self.now.module
        stands_in = is_module and not is_forward
        # By place: a frame is made at each call, where keywords would cost time.
        self.now = Frame(function, owner, path, kind, type_name, clock, clock, stands_in)
        self._frames.append(self.now)
        if self._whole:
            self.here()

    def _as_module(self, module: int | str | None) -> tuple[str, str]:
        """The path and the class of a module that is called now."""
        if not isinstance(module, int):
            return f"{self.now.path}.{module}".lstrip("."), str(module)
        names = self._modules[module]
        return _best_name(names.names, self.now.path).lstrip("."), names.type_name

    def here(self) -> int:
        """The scope of the innermost call, in which something happens."""
        if self.now.scope < 0:
            for around, frame in pairwise(self._frames):
                if frame.scope < 0:
                    frame.scope = len(self.scopes)
                    self.scopes.append(_scope(frame, around.scope, self._length))
                    self.functions.append(frame.function)
                    if frame.held is not None:
                        self.held[frame.scope] = frame.held
        return self.now.scope

    def hold(self, worths: Held) -> None:
        """What the parts in braces of the innermost call's annotations are worth."""
        self.now.held = worths
        if self.now.scope >= 0:
            self.held[self.now.scope] = worths

    def leave(self, clock: int, function: int) -> None:
        """A function ends; calls inside it that never said so end with it."""
        if all(frame.function != function for frame in self._frames[1:]):
            return
        while True:
            frame = self._frames.pop()
            self.now = self._frames[-1]
            if frame.scope >= 0:
                parent = self.scopes[frame.scope].parent
                self.scopes[frame.scope] = _scope(frame, parent, clock)
            if frame.function == function:
                return

    def finish(self, failed_after: int) -> None:
        """End the calls that never said so, and mark those that an exception ended."""
        for frame in self._frames[1:]:
            if frame.scope >= 0:
                parent = self.scopes[frame.scope].parent
                self.scopes[frame.scope] = _scope(frame, parent, self._length)
        for number, scope in enumerate(self.scopes):
            if scope.end >= failed_after and failed_after < self._length:
                self.scopes[number] = replace(scope, failed=True)

    def _demoted(self, module: int | str) -> bool:
        """The forward runs after all: what stood in for it is only a decorator around it."""
        place = len(self._frames) - 1
        while place and self._frames[place].module == module:
            if self._frames[place].stands_in:
                self._frames[place].stands_in = False
                for inner in range(place, len(self._frames)):
                    _call_function(self._frames[inner], self._frames[inner - 1].path)
                return True
            place -= 1
        return False


def _call_function(frame: Frame, around: str) -> None:
    site = REGISTRY.functions[frame.function]
    frame.path = f"{around}.{site.name}()".lstrip(".")
    frame.kind, frame.type_name = "function", _plain(site.qualname)


def _scope(frame: Frame, parent: int | None, end: int) -> Scope:
    """A call's scope."""
    site = REGISTRY.functions[frame.function]
    of = parent, frame.path, frame.kind, frame.type_name, site.file, site.line
    return Scope(*of, frame.start, end)


def _is_free(qualname: str) -> bool:
    """Whether a function belongs to no class; called on a module it stands for its forward."""
    holder = qualname.rpartition(".")[0]
    return not holder or holder.endswith("<locals>")


def _plain(qualname: str) -> str:
    return qualname.replace(".<locals>", "")


def _best_name(names: Sequence[str], parent: str) -> str:
    """Of a shared module's names, the one under the module that calls it."""
    prefix = parent.partition("(")[0].rpartition(".")[0] if "(" in parent else parent
    for name in names:
        if prefix and name.startswith(prefix + "."):
            return name
    return names[0]
