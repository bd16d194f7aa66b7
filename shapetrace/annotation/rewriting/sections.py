"""The imports at the top of a file, and where another belongs among them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

_Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_FUTURE, _STANDARD, _OTHER, _OWN = range(4)


@dataclass(frozen=True, slots=True)
class Header:
    """Imports that have run, unconditionally, before the file's first function or class.

    Attributes:
        statements: The import statements.
        lines: Where they stand in the module's body.
    """

    statements: tuple[cst.Import | cst.ImportFrom, ...]
    lines: tuple[int, ...]

    def names(self, origin: str) -> dict[str, str]:
        """What is imported from a module: name and the name it has here."""
        return {
            alias.evaluated_name: alias.evaluated_alias or alias.evaluated_name
            for statement in self.statements
            if isinstance(statement, cst.ImportFrom)
            and not isinstance(statement.names, cst.ImportStar)
            and _origin(statement) == origin
            for alias in statement.names
        }

    def module(self, origin: str) -> str:
        """The name under which a module itself is imported; empty when it is not."""
        for statement in self.statements:
            if isinstance(statement, cst.Import):
                for alias in statement.names:
                    if alias.evaluated_name == origin:
                        return alias.evaluated_alias or origin
                    if alias.evaluated_name.startswith(f"{origin}.") and not alias.asname:
                        return origin
        return ""


def header_of(module: cst.Module) -> Header:
    """The imports at the top of a module."""
    found: list[tuple[int, cst.Import | cst.ImportFrom]] = []
    for index, line in enumerate(module.body):
        if isinstance(line, cst.FunctionDef | cst.ClassDef):
            break
        if isinstance(line, cst.SimpleStatementLine):
            imports = (s for s in line.body if isinstance(s, cst.Import | cst.ImportFrom))
            found.extend((index, statement) for statement in imports)
    return Header(tuple(s for _, s in found), tuple(index for index, _ in found))


def insert_line(module: cst.Module, statement: cst.Import | cst.ImportFrom) -> cst.Module:
    """The module with one more import, in the section and order that sorters use."""
    header = header_of(module)
    rank = _rank(statement)
    before = [
        index
        for index, other in zip(header.lines, header.statements, strict=True)
        if _rank(other) == rank
    ]
    if before:
        return _within(module, _beside_torch(module, before, header), header, statement)
    earlier = [
        index
        for index, other in zip(header.lines, header.statements, strict=True)
        if _rank(other) < rank
    ]
    place = earlier[-1] + 1 if earlier else _after_docstring(module)
    return _as_section(module, place, statement, first=not earlier and place == 0)


def _within(
    module: cst.Module,
    section: Sequence[int],
    header: Header,
    statement: cst.Import | cst.ImportFrom,
) -> cst.Module:
    """Put an import among others of its kind: before the first that sorts after it."""
    statements = dict(zip(header.lines, header.statements, strict=True))
    later = [index for index in section if _sort_key(statements[index]) > _sort_key(statement)]
    if not later:
        return _inserted(module, section[-1] + 1, cst.SimpleStatementLine([statement]))
    place = later[0]
    old = module.body[place]
    assert isinstance(old, cst.SimpleStatementLine)  # noqa: S101 - imports stand in such lines
    blank = [line for line in old.leading_lines if line.comment is None]
    if place != section[0] or len(blank) != len(old.leading_lines):
        return _inserted(module, place, cst.SimpleStatementLine([statement]))
    new = cst.SimpleStatementLine([statement], leading_lines=blank)
    body = [
        *module.body[:place],
        new,
        old.with_changes(leading_lines=[]),
        *module.body[place + 1 :],
    ]
    return module.with_changes(body=body)


def _beside_torch(module: cst.Module, lines: Sequence[int], header: Header) -> Sequence[int]:
    """Of imports that blank lines separate, the group with torch's; else the first."""
    statements = dict(zip(header.lines, header.statements, strict=True))
    groups: list[list[int]] = []
    for line in lines:
        leading = getattr(module.body[line], "leading_lines", ())
        starts = any(empty.comment is None for empty in leading)
        if not groups or starts or line != groups[-1][-1] + 1:
            groups.append([])
        groups[-1].append(line)
    for group in groups:
        if any(_origin(statements[line]).split(".")[0] == "torch" for line in group):
            return group
    return groups[0]


def _as_section(
    module: cst.Module, place: int, statement: cst.Import | cst.ImportFrom, *, first: bool
) -> cst.Module:
    """Put an import where there are none of its kind, with blank lines around it."""
    blank = cst.EmptyLine(indent=False)
    above = [] if first else [blank]
    line = cst.SimpleStatementLine([statement], leading_lines=above)
    body = [*module.body[:place], line, *module.body[place:]]
    if place < len(module.body):
        body[place + 1] = _set_off(module.body[place])
    return module.with_changes(body=body)


def _set_off(statement: _Statement) -> _Statement:
    """A statement with blank lines before it: two before a function or class."""
    lines = list(getattr(statement, "leading_lines", ()))
    wanted = 2 if isinstance(statement, cst.FunctionDef | cst.ClassDef) else 1
    have = next((i for i, line in enumerate(lines) if line.comment is not None), len(lines))
    padding = [cst.EmptyLine(indent=False)] * max(0, wanted - have)
    changed: _Statement = statement.with_changes(leading_lines=[*padding, *lines])
    return changed


def _inserted(module: cst.Module, place: int, line: cst.SimpleStatementLine) -> cst.Module:
    return module.with_changes(body=[*module.body[:place], line, *module.body[place:]])


def _after_docstring(module: cst.Module) -> int:
    return 1 if module.get_docstring(clean=False) is not None else 0


def _origin(statement: cst.Import | cst.ImportFrom) -> str:
    """The module that is imported from; dots in front for a relative import."""
    if isinstance(statement, cst.Import):
        return statement.names[0].evaluated_name
    name = cst.helpers.get_full_name_for_node(statement.module) if statement.module else ""
    return "." * len(statement.relative) + (name or "")


def _rank(statement: cst.Import | cst.ImportFrom) -> int:
    root = _origin(statement).split(".")[0]
    if root == "__future__":
        return _FUTURE
    if not root:
        return _OWN
    return _STANDARD if root in sys.stdlib_module_names else _OTHER


def _sort_key(statement: cst.Import | cst.ImportFrom) -> tuple[bool, str]:
    return isinstance(statement, cst.ImportFrom), _origin(statement).lower()
