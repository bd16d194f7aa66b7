"""An annotation that gives way: what else than a tensor it allowed stays allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

_TENSOR = re.compile(r"Tensor\b|\bParameter\b")


def widened(new: cst.BaseExpression, old: cst.BaseExpression) -> cst.BaseExpression | None:
    """The new annotation with the alternatives of the old one that name no tensor.

    Runs seldom show every alternative of a union; what they did not show may still come.

    Args:
        new: What the runs showed.
        old: What the source says.

    Returns:
        A union, or `new` itself; None where the old one is in quotes and can't be taken apart.
    """
    quoted = isinstance(old, cst.SimpleString)
    if isinstance(old, cst.SimpleString):
        try:
            old = cst.parse_expression(str(old.evaluated_value))
        except cst.ParserSyntaxError:
            return None
    options = [code for code in map(_code, _options(old)) if not _TENSOR.search(code)]
    have = {_code(option) for option in _options(new)}
    kept = [code for code in options if code not in have and _adds(code)]
    if quoted and any(code != "None" for code in kept):
        return None
    ordered = sorted(kept, key=lambda code: code == "None")
    return cst.parse_expression(" | ".join([_code(new), *ordered])) if ordered else new


def _adds(code: str) -> bool:
    """Whether an alternative may stand beside others: ``Any`` takes them all in."""
    return code.rpartition(".")[2] not in ("Any", "object") and not code.startswith(("'", '"'))


def _options(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The alternatives of a union in any spelling."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            yield from _options(left)
            yield from _options(right)
        case cst.Subscript(value=value, slice=parts) if _name(value) in ("Optional", "Union"):
            for part in parts:
                if isinstance(part.slice, cst.Index):
                    yield from _options(part.slice.value)
            if _name(value) == "Optional":
                yield cst.Name("None")
        case _:
            yield node


def _name(node: cst.BaseExpression) -> str:
    return _code(node).rpartition(".")[2]


def _code(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node).strip()
