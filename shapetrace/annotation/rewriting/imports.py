"""How a file imports what annotations need, and the lines that are missing for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from shapetrace.annotation.plan.annotation import Annotation, Array, Spelling, UnknownPart, parts
from shapetrace.annotation.rewriting.sections import Header, header_of, insert_line


@dataclass(frozen=True, slots=True)
class Needs:
    """What some annotations need: dtype classes, torch's tensor, ``Any``."""

    dtypes: frozenset[str]
    unknown: bool


def needs_of(annotations: Sequence[Annotation]) -> Needs:
    """What some annotations need."""
    found = [part for annotation in annotations for part in parts(annotation)]
    dtypes = frozenset(part.dtype for part in found if isinstance(part, Array))
    return Needs(dtypes, any(isinstance(part, UnknownPart) for part in found))


@dataclass(frozen=True, slots=True)
class Imports:
    """How a file spells annotations, and what has to be added for that.

    Attributes:
        spelling: The names to write.
        names: Names to import: module and name; an empty name imports the module itself.
    """

    spelling: Spelling
    names: tuple[tuple[str, str], ...]


def plan_imports(module: cst.Module, needs: Needs) -> Imports:
    """Decide on names in the style of the file."""
    header, taken = header_of(module), _taken(module)
    dtype, aliases, added = _dtype_names(header, taken, needs)
    tensor, more = _tensor_name(header, taken, needs)
    any_name, last = _any_name(header, needs)
    return Imports(Spelling(dtype, tensor, any_name, aliases), (*added, *more, *last))


def _dtype_names(
    header: Header, taken: set[str], needs: Needs
) -> tuple[str, tuple[tuple[str, str], ...], list[tuple[str, str]]]:
    imported = header.names("jaxtyping")
    missing = sorted(needs.dtypes - set(imported))
    module = header.module("jaxtyping")
    if module and not imported:
        return f"{module}.", (), []
    if any(name in taken for name in missing):
        added = [] if module else [("jaxtyping", "")]
        return f"{module or 'jaxtyping'}.", tuple(imported.items()), added
    return "", tuple(imported.items()), [("jaxtyping", name) for name in missing]


def _tensor_name(
    header: Header, taken: set[str], needs: Needs
) -> tuple[str, list[tuple[str, str]]]:
    alias, module = header.names("torch").get("Tensor"), header.module("torch")
    if alias:
        return alias, []
    if module:
        return f"{module}.Tensor", []
    if "Tensor" in taken:
        return "torch.Tensor", [("torch", "")] if needs.dtypes else []
    return "Tensor", [("torch", "Tensor")] if needs.dtypes else []


def _any_name(header: Header, needs: Needs) -> tuple[str, list[tuple[str, str]]]:
    alias, module = header.names("typing").get("Any"), header.module("typing")
    if alias:
        return alias, []
    if module:
        return f"{module}.Any", []
    return "Any", [("typing", "Any")] if needs.unknown else []


def add_imports(module: cst.Module, imports: Imports) -> cst.Module:
    """The module with the missing imports, each in its place."""
    by_module: dict[str, list[str]] = {}
    for origin, name in imports.names:
        by_module.setdefault(origin, []).append(name)
    for origin in sorted(by_module):
        names = [name for name in by_module[origin] if name]
        module = _import_names(module, origin, names) if names else _import_module(module, origin)
    return module


def _import_module(module: cst.Module, origin: str) -> cst.Module:
    statement = cst.Import([cst.ImportAlias(cst.Name(origin))])
    return insert_line(module, statement)


def _import_names(module: cst.Module, origin: str, names: list[str]) -> cst.Module:
    for index in header_of(module).lines:
        line = module.body[index]
        statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if _imports_from(statement, origin):
            assert isinstance(statement, cst.ImportFrom)  # noqa: S101 - as just asked
            assert isinstance(line, cst.SimpleStatementLine)  # noqa: S101
            extended = line.with_changes(body=[_extended(statement, names)])
            return module.with_changes(body=_replaced(module.body, index, extended))
    aliases = [cst.ImportAlias(cst.Name(name)) for name in sorted(names, key=_order)]
    return insert_line(module, cst.ImportFrom(cst.Name(origin), aliases))


def _imports_from(statement: object, origin: str) -> bool:
    return (
        isinstance(statement, cst.ImportFrom)
        and not statement.relative
        and isinstance(statement.module, cst.Name)
        and statement.module.value == origin
        and not isinstance(statement.names, cst.ImportStar)
    )


def _extended(statement: cst.ImportFrom, names: list[str]) -> cst.ImportFrom:
    """The import with more names, in order, with the commas that it has."""
    assert not isinstance(statement.names, cst.ImportStar)  # noqa: S101 - the caller asked
    aliases = list(statement.names)
    last = aliases[-1].comma
    between = aliases[0].comma if len(aliases) > 1 else cst.MaybeSentinel.DEFAULT
    if not isinstance(between, cst.Comma):
        between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    for name in names:
        new = cst.ImportAlias(cst.Name(name))
        later = (i for i, alias in enumerate(aliases) if _order(_name(alias)) > _order(name))
        aliases.insert(next(later, len(aliases)), new)
    commas = [between] * (len(aliases) - 1) + [last]
    spaced = [
        alias
        if index < len(aliases) - 1
        and isinstance(alias.comma, cst.Comma)
        and alias.comma is not last
        else alias.with_changes(comma=comma)
        for index, (alias, comma) in enumerate(zip(aliases, commas, strict=True))
    ]
    return statement.with_changes(names=spaced)


def _name(alias: cst.ImportAlias) -> str:
    return alias.name.value if isinstance(alias.name, cst.Name) else ""


def _order(name: str) -> tuple[int, str]:
    """Import sorters put constants first, then classes, then functions and modules."""
    constant = len(name) > 1 and name.isupper()
    return (0 if constant else 1 if name[:1].isupper() else 2), name


def _replaced(
    body: Sequence[cst.BaseStatement | cst.SimpleStatementLine], index: int, new: cst.BaseStatement
) -> list[cst.BaseStatement | cst.SimpleStatementLine]:
    return [*body[:index], new, *body[index + 1 :]]


def _taken(module: cst.Module) -> set[str]:
    """Names that the module's code binds anywhere, other than by importing these very things."""
    return {name for node in ast.walk(ast.parse(module.bytes)) for name in _bound_by(node)}


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.ImportFrom(module="jaxtyping" | "torch" | "typing", level=0):
            return
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            yield from (one.asname or one.name.split(".")[0] for one in names)
