"""Operands of statements that take parts of values: indexed, assigned to, unpacked, split."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import torch

from shapetrace.capture.failure.frame_reader import UNKNOWN, FrameReader, hidden
from shapetrace.records.trace import Operand


def indices(reader: FrameReader, index: ast.expr) -> Iterator[Operand]:
    """What indexes: of slices, those with a bound."""
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(part, ast.Slice):
            value = reader.worth(part)
            bounds = (part.lower, part.upper, part.step)
            if isinstance(value, slice) and not all(
                bound is None or isinstance(bound, ast.Constant) for bound in bounds
            ):
                shown = ("" if end is None else str(end) for end in (value.start, value.stop))
                yield Operand(ast.unparse(part), "slice", value=":".join(shown))
        else:
            yield from reader.written(part, "0")


def assigned(reader: FrameReader, part: ast.Subscript) -> Iterator[Operand]:
    """The part of a tensor that is assigned to, and what is assigned."""
    value = reader.worth(part)
    if isinstance(value, torch.Tensor):
        yield replace(reader.tensor(ast.unparse(part), "part", value), device="")
    statement = reader.place.statement
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        yield from reader.written(statement.value, "value")


def unpacked(reader: FrameReader) -> Iterator[Operand]:
    """What is taken apart, how many values it has, and what it was split from."""
    statement = reader.place.statement
    if not isinstance(statement, ast.Assign):
        return
    node = statement.value
    value = reader.worth(node)
    if value is None or value is UNKNOWN:
        yield Operand(ast.unparse(node), "value", value="" if value is UNKNOWN else "None")
    elif isinstance(value, torch.Tensor):
        yield replace(reader.tensor(ast.unparse(node), "value", value), device="")
    elif isinstance(value, tuple | list):
        yield Operand(ast.unparse(node), "value", value=f"{len(value)} values")
        yield hidden("count", len(value))
        yield from _split(reader, node)


def _split(reader: FrameReader, node: ast.expr) -> Iterator[Operand]:
    """The tensor of a split or chunk, its axis and the size of the pieces."""
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        yield from reader.written(node.value, "owner")
    if not isinstance(node, ast.Call):
        return
    name, args = _name(node.func), list(node.args)
    if name not in {"split", "chunk", "unbind", "tensor_split"}:
        return
    owner = node.func.value if isinstance(node.func, ast.Attribute) else args[0]
    if not isinstance(reader.worth(owner), torch.Tensor) and args:
        owner = args.pop(0)
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    yield from reader.written(owner, "split")
    places = {"dim": 0 if name == "unbind" else 1}
    places |= {"by": 0} if name == "split" else {}
    for role, place in places.items():
        wanted = keywords.get("split_size_or_sections" if role == "by" else role)
        part = args[place] if place < len(args) else wanted
        found = reader.worth(part) if part is not None else UNKNOWN
        if isinstance(found, int):
            yield hidden(role, found)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
