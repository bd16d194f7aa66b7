"""The calls of a run as scopes: which module or function each is of, and its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import nn

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
        scope: Index of its scope.
        function: Number of its function.
        module: The module whose code runs: its index, its class outside the model, or None.
        path: The scope's path.
        last: Clock at the end of its last statement.
        stands_in: Whether it is taken for the module's own call though no forward runs.
    """

    scope: int
    function: int
    module: int | str | None
    path: str
    last: int
    stands_in: bool = False


class Calls:
    """The calls that are running, and a scope for each that ever ran.

    Attributes:
        now: The innermost call that is running.
    """

    def __init__(
        self,
        modules: Sequence[ModuleNames],
        target: str,
        length: int,
        scopes: list[Scope],
        functions: list[int],
    ) -> None:
        """Begin with the root.

        Args:
            modules: The model's modules, by the index that events carry.
            target: What the run is called.
            length: Clock at the end of the run.
            scopes: Is filled with a scope per call.
            functions: Is filled with the number of each call's function.
        """
        self.scopes = scopes
        self.functions = functions
        self._modules = modules
        self.now = Frame(0, -1, None, "", 0)
        self._frames = [self.now]
        scopes.append(Scope(None, "", "function", target, "", 0, 0, length))
        functions.append(-1)

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
        number = len(self.scopes)
        kind: ScopeKind = "module" if is_module else "function"
        end = self.scopes[0].end
        scope = Scope(self.now.scope, path, kind, type_name, site.file, site.line, clock, end)
        self.scopes.append(scope)
        self.functions.append(function)
        owner = module if module is not None else self.now.module
        stands_in = is_module and not is_forward
        self._push(Frame(number, function, owner, path, clock, stands_in))

    def _as_module(self, module: int | str | None) -> tuple[str, str]:
        """The path and the class of a module that is called now."""
        if not isinstance(module, int):
            return f"{self.now.path}.{module}".lstrip("."), str(module)
        names = self._modules[module]
        return _best_name(names.names, self.now.path).lstrip("."), names.type_name

    def _push(self, frame: Frame) -> None:
        self._frames.append(frame)
        self.now = frame

    def leave(self, clock: int, function: int) -> None:
        """A function ends; calls inside it that never said so end with it."""
        if all(frame.function != function for frame in self._frames[1:]):
            return
        while True:
            frame = self._frames.pop()
            self.now = self._frames[-1]
            self.scopes[frame.scope] = _ended(self.scopes[frame.scope], clock)
            if frame.function == function:
                return

    def finish(self, failed_after: int) -> None:
        """Mark the calls that an exception ended."""
        for number, scope in enumerate(self.scopes):
            if scope.end >= failed_after and failed_after < self.scopes[0].end:
                self.scopes[number] = replace(scope, failed=True)

    def _demoted(self, module: int | str) -> bool:
        """The forward runs after all: what stood in for it is only a decorator around it."""
        place = len(self._frames) - 1
        while place and self._frames[place].module == module:
            if self._frames[place].stands_in:
                self._frames[place].stands_in = False
                for inner in range(place, len(self._frames)):
                    self._call_function(self._frames[inner], self._frames[inner - 1].path)
                return True
            place -= 1
        return False

    def _call_function(self, frame: Frame, around: str) -> None:
        site = REGISTRY.functions[frame.function]
        frame.path = f"{around}.{site.name}()".lstrip(".")
        self.scopes[frame.scope] = replace(
            self.scopes[frame.scope],
            path=frame.path,
            kind="function",
            type_name=_plain(site.qualname),
        )


def _ended(scope: Scope, clock: int) -> Scope:
    """`replace`, which looks at every field by name, written out: every call ends."""
    of = scope.parent, scope.path, scope.kind, scope.type_name, scope.file, scope.line
    return Scope(*of, scope.start, clock)


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
