"""Integer expressions of dimension names, evaluated without `eval`.

``h*d_k``, ``(H-1)//2+1``, ``max(n,m)``; a part in braces (``{self.width}``) stands for a
value that only the running code knows, and is a name of its own here.
"""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Number = int | Fraction

_BRACES = re.compile(r"\{([^{}]*)\}")
_PLACE = "braces_"
_LARGEST_EXPONENT = 64


class ExpressionError(ShapetraceError, ValueError):
    """An expression that cannot be read, or uses more than integer arithmetic."""


class UnboundNameError(ShapetraceError, LookupError):
    """An expression uses names that nothing has bound.

    Attributes:
        names: Those names.
    """

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        listed = ", ".join(f"`{name}`" for name in names)
        super().__init__(f"`{text}` uses {listed}, which no axis before it binds")
        self.names = names


def evaluate(text: str, sizes: Mapping[str, int]) -> Number:
    """The value of an expression.

    Args:
        text: The expression.
        sizes: Size by name.

    Returns:
        An integer, or a fraction where ``/`` does not come out even.

    Raises:
        UnboundNameError: It uses names that are not in `sizes`.
        ExpressionError: It is no integer expression, or divides by zero.
    """
    missing = tuple(name for name in names_in(text) if name not in sizes)
    if missing:
        raise UnboundNameError(text, missing)
    tree, braces, identifiers = _parse(text)
    try:
        value = _value(tree, {name: sizes[braces.get(name, name)] for name in identifiers})
    except ZeroDivisionError:
        raise ExpressionError(f"`{text}` divides by zero") from None
    except ExpressionError as error:
        raise ExpressionError(f"`{text}`: {error}") from None
    return int(value) if value.denominator == 1 else value


@cache
def names_in(text: str) -> tuple[str, ...]:
    """The names that an expression uses, each once, in order; braces with their braces.

    Raises:
        ExpressionError: It is no expression.
    """
    _, braces, identifiers = _parse(text)
    return tuple(dict.fromkeys(braces.get(name, name) for name in identifiers))


@cache
def _parse(text: str) -> tuple[ast.expr, dict[str, str], tuple[str, ...]]:
    """The syntax tree, what stands for each part in braces, and the names as they appear."""
    braces: dict[str, str] = {}

    def place(match: re.Match[str]) -> str:
        name = f"{_PLACE}{len(braces)}"
        braces[name] = match.group(0)
        return name

    try:
        tree = ast.parse(_BRACES.sub(place, text), mode="eval").body
    except (SyntaxError, ValueError):
        raise ExpressionError(f"`{text}` is not an expression of dimension names") from None
    return tree, braces, _identifiers(tree)


def _identifiers(tree: ast.expr) -> tuple[str, ...]:
    """Names in order of appearance, functions left out."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    ordered = sorted(found, key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in ordered))


def _power(base: Number, exponent: Number) -> Number:
    if exponent.denominator != 1 or not 0 <= exponent <= _LARGEST_EXPONENT:
        raise ExpressionError(f"the exponent {exponent} is not a small whole number")
    return base ** int(exponent)


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: Fraction(a) / Fraction(b),
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "round": round,
}


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Number:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if (
            name in _FUNCTIONS
        ):
            return _call(name, [_value(arg, sizes) for arg in args])
    raise ExpressionError(f"`{ast.unparse(node)}` is more than integer arithmetic")


def _call(name: str, values: list[Number]) -> Number:
    try:
        return _FUNCTIONS[name](*values)
    except TypeError:
        raise ExpressionError(f"{name} does not take {len(values)} numbers") from None
