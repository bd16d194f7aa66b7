"""From traces to a plan: what each function's parameters, returns and variables are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from shapetrace.annotation.inference.axes import AxisNames, Slugs
from shapetrace.annotation.inference.calls import (
    ObservedCall,
    ObservedFunction,
    ObservedTensor,
    Owned,
    PathSteps,
    calls_of,
)
from shapetrace.annotation.inference.containers import EVERY, Places, leads_to
from shapetrace.annotation.inference.fields import fields_left_out
from shapetrace.annotation.inference.kept_names import following
from shapetrace.annotation.inference.paths import NO_PATHS, Paths, paths_of, widened
from shapetrace.annotation.inference.shapes import annotation_of
from shapetrace.annotation.inference.signatures import Parameter, SourceSignature, signatures
from shapetrace.annotation.inference.variables import plan_locals
from shapetrace.annotation.plan.annotation import (
    NONE,
    Annotation,
    Plain,
    UnknownPart,
    arrays,
    union,
)
from shapetrace.annotation.plan.plans import FilePlan, FunctionPlan, LeftOut, LocalPlan
from shapetrace.records.structure import Structure, Structures

if TYPE_CHECKING:
    from shapetrace.records.trace import Trace
    from shapetrace.source_code import Span

_NOT_LOOKED_INTO = "is in a generator, an async function or a special method, not looked into"
Which = Literal["none", "first", "all"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for.

    Attributes:
        locals: Which variables get annotations.
        only: Patterns of files, or of functions' qualified names; empty for all.
        exact_dtype: Whether a lone dtype is written exactly: ``Float32``.
        replace: Whether existing annotations give way.
    """

    locals: Which = "none"
    only: tuple[str, ...] = ()
    exact_dtype: bool = False
    replace: bool = False

    def include(self, function: ObservedFunction) -> bool:
        """Whether a function is wanted."""
        names = (function.file, Path(function.file).name, function.qualname)
        return not self.only or any(
            fnmatch(name, pattern) or fnmatch(name, f"*/{pattern}")
            for pattern in self.only
            for name in names
        )


@dataclass(frozen=True, slots=True)
class Inferred:
    """Plans by file, and what they leave out.

    Attributes:
        files: One plan per file that has anything to annotate.
        left_out: What gets none, and why.
        tensors: How many parameters and returns held a tensor in some call.
        invented: The names of sizes of parameters and returns that nobody uses, by function.
    """

    files: tuple[FilePlan, ...]
    left_out: tuple[LeftOut, ...]
    tensors: int
    invented: tuple[str, ...] = ()


def infer(
    traces: Iterable[Trace],
    structures: Structures,
    sources: Mapping[str, bytes],
    wishes: Wishes | None = None,
    *,
    ran: Mapping[str, frozenset[Span]] | None = None,
    owned: Sequence[Owned] = (),
) -> Inferred:
    """The least general annotations that hold in all the calls of some runs.

    Args:
        traces: Runs, at several sizes where they can be had; their records' `dims` name axes.
        structures: What kind of value each parameter and return held.
        sources: The files to annotate.
        wishes: What is asked for.
        ran: By file, the places of the code that ran; all of it when not given.
        owned: For each run, the whole numbers that the model's modules hold.

    Raises:
        SyntaxError: A source can't be parsed.
    """
    wishes = wishes or Wishes()
    found = calls_of(traces, sources.keys(), owned)
    plans, left_out, tensors, invented = [], [], 0, []
    for file, source in sources.items():
        slugs = Slugs()
        by_line = {signature.line: signature for signature in signatures(source)}
        functions = sorted(
            (function for function in found if function.file == file), key=lambda f: f.line
        )
        known = {one: by_line[one.line] for one in functions if one.line in by_line}
        calls = found if wishes.replace else following(known, found)
        paths = paths_of(source, ran[file]) if ran is not None and file in ran else {}
        drafts = [
            _Draft(
                function=function,
                signature=signature,
                calls=calls[function],
                structures=structures,
                wishes=wishes,
                slugs=slugs,
                paths=paths.get(function.line, NO_PATHS),
            )
            for function, signature in known.items()
            if wishes.include(function)
        ]
        planned = [draft.plan() for draft in drafts]
        plans.append(FilePlan(file, tuple(plan for plan in planned if plan.count)))
        left_out += [one for draft in drafts for one in draft.left_out]
        unseen = list(_unseen(file, by_line, found, structures, wishes))
        left_out += [*unseen, *(() if wishes.only else fields_left_out(file, source, structures))]
        tensors += sum(draft.tensors for draft in drafts) + len(unseen)
        invented += [name for draft in drafts for name in draft.invented]
    files = tuple(plan for plan in plans if plan.functions)
    return Inferred(files, tuple(left_out), tensors, tuple(invented))


def _unseen(
    file: str,
    by_line: Mapping[int, SourceSignature],
    found: Mapping[ObservedFunction, object],
    structures: Structures,
    wishes: Wishes,
) -> Iterator[LeftOut]:
    """Places that held tensors in functions that no recording looks into."""
    seen = {function.line for function in found if function.file == file}
    for (where, line, name), kinds in structures.items():
        if where != file or line in seen or line not in by_line:
            continue
        function = ObservedFunction(file, line, by_line[line].qualname)
        if wishes.include(function) and any(kind.has_tensor for kind in kinds):
            yield LeftOut(file, line, function.qualname, name, _NOT_LOOKED_INTO)


@dataclass(slots=True)
class _Draft:
    """The plan of one function, while it is made."""

    function: ObservedFunction
    signature: SourceSignature
    calls: Sequence[ObservedCall]
    structures: Structures
    wishes: Wishes
    slugs: Slugs
    paths: Paths = NO_PATHS
    left_out: list[LeftOut] = field(default_factory=list)
    tensors: int = 0
    invented: tuple[str, ...] = ()

    def plan(self) -> FunctionPlan:
        """The function's annotations."""
        function = self.function
        if self.signature.left_alone:
            self._leave("", self.signature.left_alone)
            return FunctionPlan(function.line, function.qualname)
        names = AxisNames(self.slugs, [call.owned for call in self.calls])
        parameters = [
            (parameter.name, annotation)
            for parameter in self.signature.parameters
            if (annotation := self._parameter(parameter, names)) is not None
        ]
        returns = self._returned(names)
        self.invented = tuple(sorted(names.invented))
        variables = tuple(self._variables(names)) if self.wishes.locals != "none" else ()
        return FunctionPlan(
            function.line,
            function.qualname,
            tuple(parameters),
            returns,
            variables,
        )

    def _variables(self, names: AxisNames) -> Iterator[LocalPlan]:
        wishes = self.wishes
        for one in plan_locals(
            self.signature,
            self.calls,
            names,
            every=wishes.locals == "all",
            exact=wishes.exact_dtype,
            replace=wishes.replace,
            unrun=self.paths.unrun,
        ):
            if isinstance(one, LocalPlan):
                yield one
            else:
                self._leave(one.name, one.reason)

    def _parameter(self, parameter: Parameter, names: AxisNames) -> Annotation | None:
        structures = self._structures(parameter.name)
        if not any(structure.has_tensor for structure in structures):
            return None
        prefix: PathSteps = ()
        if parameter.kind != "plain":  # the annotation is that of one item
            items = tuple(dict.fromkeys(item for one in structures for _, item in one.items))
            if any(not item.has_tensor for item in items) or parameter.kind == "kwargs":
                self._leave(parameter.name, "takes whatever is passed on, not tensors alone")
                return None
            structures, prefix = items, (EVERY,)
        firm = parameter.kind == "plain" and not parameter.default
        found = self._annotation(parameter.name, structures, prefix, names, firm=firm)
        if found is not None and parameter.default:
            return union([found, NONE if parameter.default == "None" else Plain(parameter.default)])
        return found

    def _returned(self, names: AxisNames) -> Annotation | None:
        structures = self._structures("return")
        if not any(structure.has_tensor for structure in structures):
            return None
        if self.signature.passes_on:
            self._leave("return", "is whatever the function that is called returns")
            return None
        found = self._annotation("return", structures, (), names, firm=False)
        return None if found is None else self._on_every_path(found)

    def _on_every_path(self, found: Annotation) -> Annotation | None:
        """The return annotation with what ways that did not run show; None if that is too much."""
        whole = union([found, NONE]) if self.signature.may_return_none else found
        unknown: list[int] = []
        for path in self.paths.open:
            wider = widened(whole, path)
            if path.shows is None or wider is None:
                unknown.append(path.line)
            if wider is None:
                lines = _lines([one.line for one in self.paths.open if one.shows is None])
                self._leave("return", f"may be another thing: {lines} did not run")
                return None
            whole = wider
        if unknown and not arrays(whole) and not isinstance(whole, Plain):
            self._leave("return", f"may be another thing: {_lines(unknown)} did not run")
            return None
        if unknown:
            self._leave("return", f"is open (Any) where {_lines(unknown)} did not run")
        return whole

    def _annotation(
        self,
        name: str,
        structures: Sequence[Structure],
        prefix: PathSteps,
        names: AxisNames,
        *,
        firm: bool,
    ) -> Annotation | None:
        self.tensors += 1

        def leaf(steps: PathSteps, firmly: bool) -> Annotation:  # noqa: FBT001 - a Leaf
            tensors = self._tensors(name, steps)
            hint = "out" if name == "return" else name
            if not tensors:
                return UnknownPart()
            return annotation_of(
                tensors, names, hint, firm=firm and firmly, exact=self.wishes.exact_dtype
            )

        found = Places(leaf, self.signature.visible).annotate(structures, prefix)
        if isinstance(found, UnknownPart) or not _says_something(found, structures):
            self._leave(name, _unknown(structures))
            return None
        return found

    def _tensors(self, name: str, pattern: PathSteps) -> dict[int, list[ObservedTensor]]:
        """By number of the call: the tensors at some steps into a value."""
        found: dict[int, list[ObservedTensor]] = {}
        for number, call in enumerate(self.calls):
            seen = [one for one in call.values.get(name, ()) if leads_to(pattern, one.steps)]
            if seen:
                found[number] = seen
        return found

    def _structures(self, name: str) -> tuple[Structure, ...]:
        """What was observed; else what the records alone tell: plain tensors, or none."""
        known = self.structures.get((self.function.file, self.function.line, name))
        if known is not None:
            return known
        seen = [one for call in self.calls for one in call.values.get(name, ())]
        if not seen:
            return ()
        if any(one.steps for one in seen):
            return (Structure("class", type_name="?", items=(("[0]", Structure("tensor")),)),)
        missing = any(name not in call.values for call in self.calls)
        return (Structure("tensor"), *((Structure("none"),) if missing else ()))

    def _leave(self, name: str, reason: str) -> None:
        function = self.function
        self.left_out.append(LeftOut(function.file, function.line, function.qualname, name, reason))


def _lines(numbers: Sequence[int]) -> str:
    """``line 4``, ``lines 4 and 9``."""
    texts = [str(number) for number in sorted(set(numbers))]
    if len(texts) == 1:
        return f"line {texts[0]}"
    return f"lines {', '.join(texts[:-1])} and {texts[-1]}"


def _says_something(annotation: Annotation, structures: Sequence[Structure]) -> bool:
    """Whether an annotation speaks of a tensor, itself or through a class with fields."""
    return bool(arrays(annotation)) or any(structure.kind == "fields" for structure in structures)


def _unknown(structures: Sequence[Structure]) -> str:
    """Why a value has no annotation."""
    kinds = {structure.kind for structure in structures}
    if "ragged" in kinds:
        return "is a ragged tensor, which has no plain sizes"
    for verb, places in (("may be", structures), ("holds", tuple(_inside(structures)))):
        classes = sorted(
            {one.type_name for one in places if one.kind in ("class", "fields") and one.type_name}
        )
        if classes:
            return f"{verb} a {' or '.join(classes)}, which the file does not import"
    return "holds a tensor that was not recorded"


def _inside(structures: Sequence[Structure]) -> Iterator[Structure]:
    """What containers hold, at any depth."""
    for structure in structures:
        items = [item for _, item in structure.items]
        yield from items
        yield from _inside(items)
