"""A signature that has become too long for its line gets a line per parameter."""

from __future__ import annotations

from typing import Any

import libcst as cst

_STEP = "    "


def wrapped(old: cst.FunctionDef, new: cst.FunctionDef, column: int, limit: int) -> cst.FunctionDef:
    """The function, with its parameters on lines of their own where one line is too short.

    Args:
        old: As it was; with a line per parameter, or with comments, it keeps its layout.
        new: With annotations.
        column: Where it begins.
        limit: How long a line may be.
    """
    before, after = _header(old), _header(new)
    longest = max(len(line) for line in f"{' ' * column}{after}".split("\n"))
    places = _params(new.params)
    spread = before.count("\n") >= len(places)
    if longest <= limit or not places or spread or "#" in before:
        return new
    return new.with_changes(
        whitespace_before_params=_newline(_STEP), params=_one_per_line(new.params)
    )


def _header(node: cst.FunctionDef) -> str:
    bare = node.with_changes(
        decorators=(),
        leading_lines=(),
        lines_after_decorators=(),
        body=cst.SimpleStatementSuite([cst.Pass()]),
    )
    return cst.Module([bare]).code.strip().removesuffix("pass").rstrip()


def _newline(step: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(
        first_line=cst.TrailingWhitespace(),
        indent=True,
        last_line=cst.SimpleWhitespace(step),
    )


def _params(params: cst.Parameters) -> list[tuple[str, int]]:
    """The places of all parameters and of ``/`` and ``*``, in order: attribute and index."""
    found = [("posonly_params", i) for i in range(len(params.posonly_params))]
    if isinstance(params.posonly_ind, cst.ParamSlash):
        found.append(("posonly_ind", -1))
    found += [("params", i) for i in range(len(params.params))]
    if isinstance(params.star_arg, cst.Param | cst.ParamStar):
        found.append(("star_arg", -1))
    found += [("kwonly_params", i) for i in range(len(params.kwonly_params))]
    if params.star_kwarg is not None:
        found.append(("star_kwarg", -1))
    return found


def _one_per_line(params: cst.Parameters) -> cst.Parameters:
    places = _params(params)
    for number, (attribute, index) in enumerate(places):
        last = number == len(places) - 1
        comma = cst.Comma(whitespace_after=_newline("" if last else _STEP))
        value: Any = getattr(params, attribute)
        if index < 0:
            params = params.with_changes(**{attribute: _ended(value, comma)})
        else:
            items = list(value)
            items[index] = _ended(items[index], comma)
            params = params.with_changes(**{attribute: items})
    return params


def _ended(place: Any, comma: cst.Comma) -> Any:
    """A parameter, ``/`` or ``*`` with another comma and nothing else after it."""
    if isinstance(place, cst.Param):
        place = place.with_changes(whitespace_after_param=cst.SimpleWhitespace(""))
    return place.with_changes(comma=comma)
