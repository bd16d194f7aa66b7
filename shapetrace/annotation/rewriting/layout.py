"""A signature that has become too long for its line gets a line per parameter."""

from __future__ import annotations

from typing import Any

import libcst as cst

from shapetrace.annotation.rewriting.spreading import (
    INDENT,
    newline,
    spread_over_lines,
    spread_return,
)


def wrapped(old: cst.FunctionDef, new: cst.FunctionDef, column: int, limit: int) -> cst.FunctionDef:
    """The function, with its parameters on lines of their own where one line is too short.

    Args:
        old: As it was; with a line per parameter, or with comments, it keeps its layout.
        new: With annotations.
        column: Where it begins.
        limit: How long a line may be.
    """
    before, places = _header(old), _params(new.params)
    if "#" in before or _longest(new, column) <= limit:
        return new
    if places and before.count("\n") < len(places):
        new = new.with_changes(
            whitespace_before_params=newline(INDENT), params=_one_per_line(new.params)
        )
    return _spread(old, new, limit - column) if _longest(new, column) > limit else new


def _longest(node: cst.FunctionDef, column: int) -> int:
    lines = f"{' ' * column}{_header(node)}".split("\n")
    return max(len(line) for line in lines)


def _spread(old: cst.FunctionDef, new: cst.FunctionDef, limit: int) -> cst.FunctionDef:
    """The function, with the annotations that are new and too long over several lines."""
    known = {_code(one) for one in (*_plain(old.params), old.returns) if one is not None}
    params = new.params
    if "\n" in _header(new):
        for field in ("posonly_params", "params", "kwonly_params"):
            spread_out = [_param(one, known, limit) for one in getattr(params, field)]
            params = params.with_changes(**{field: spread_out})
    if new.returns is None or _code(new.returns) in known:
        return new.with_changes(params=params)
    start = len(_header(new.with_changes(returns=None)).rpartition("\n")[2]) + len(" -> ") - 1
    returns = spread_return(new.returns.annotation, start, limit)
    return new.with_changes(params=params, returns=new.returns.with_changes(annotation=returns))


def _param(param: cst.Param, known: set[str], limit: int) -> cst.Param:
    if param.annotation is None or _code(param.annotation) in known:
        return param
    default = 0 if param.default is None else len(f" = {_code(param.default)}")
    start = INDENT + len(f"{param.name.value}: ")
    wide = spread_over_lines(param.annotation.annotation, INDENT, start, default + 1, limit)
    return param.with_changes(annotation=param.annotation.with_changes(annotation=wide))


def _plain(params: cst.Parameters) -> list[cst.Annotation | None]:
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return [param.annotation for param in every]


def _code(node: cst.CSTNode) -> str:
    inner = node.annotation if isinstance(node, cst.Annotation) else node
    return cst.Module([]).code_for_node(inner)


def _header(node: cst.FunctionDef) -> str:
    bare = node.with_changes(
        decorators=(),
        leading_lines=(),
        lines_after_decorators=(),
        body=cst.SimpleStatementSuite([cst.Pass()]),
    )
    return cst.Module([bare]).code.strip().removesuffix("pass").rstrip()


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
        comma = cst.Comma(whitespace_after=newline(0 if last else INDENT))
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
