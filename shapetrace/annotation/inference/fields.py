"""Fields of classes that hold tensors: told, not annotated.

A field has the axes of whatever call made its object: names in it would speak of no
signature that binds them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shapetrace.annotation.plan.plans import LeftOut

if TYPE_CHECKING:
    from shapetrace.records.structure import Structure, Structures

_REASON = "is a field of a class, for which no call binds names: annotate it by hand"


def fields_left_out(file: str, source: bytes, structures: Structures) -> Iterator[LeftOut]:
    """The fields of a file's classes that held a tensor and whose annotation names no shape.

    Args:
        file: The file.
        source: Its source.
        structures: What kind of value each parameter and return held.
    """
    held: dict[str, set[str]] = {}
    for (where, _, _), kinds in structures.items():
        for one in kinds if where == file else ():
            _note(one, held)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name in held:
            for field, annotation in _fields(node):
                if field in held[node.name] and "Tensor, " not in annotation:
                    yield LeftOut(file, node.lineno, node.name, field, _REASON)


def _note(structure: Structure, held: dict[str, set[str]]) -> None:
    for step, item in structure.items:
        if structure.kind == "fields" and item.has_tensor:
            held.setdefault(structure.type_name, set()).add(step.lstrip("."))
        _note(item, held)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, ast.unparse(annotation)
