"""Annotations that have become too long for a line, over several, as formatters lay them out."""

from __future__ import annotations

import libcst as cst

INDENT = 4


def spread_over_lines(
    node: cst.BaseExpression, indent: int, start: int, after: int, limit: int
) -> cst.BaseExpression:
    """An annotation inside brackets, over as many lines as it needs.

    Columns are counted from where the function's ``def`` stands.

    Args:
        node: The annotation.
        indent: Where its line begins.
        start: Where it begins itself.
        after: How much follows on its last line.
        limit: Where a line has to end.
    """
    if start + len(_code(node)) + after <= limit:
        return node
    options = _options(node)
    if len(options) > 1:
        return _union(options, indent, start, after, limit)
    return _subscript(node, indent, limit) if isinstance(node, cst.Subscript) else node


def spread_return(node: cst.BaseExpression, start: int, limit: int) -> cst.BaseExpression:
    """A return annotation, which no brackets of the signature stand around."""
    if start + len(_code(node)) + 1 <= limit or len(_options(node)) == 1:
        return spread_over_lines(node, 0, start, 1, limit)
    inner = _union(_options(node), INDENT, INDENT, 0, limit)
    left = cst.LeftParen(whitespace_after=newline(INDENT))
    right = cst.RightParen(whitespace_before=newline(0))
    return inner.with_changes(lpar=[left], rpar=[right])


def newline(indent: int) -> cst.ParenthesizedWhitespace:
    """A line's end inside brackets, and the indentation of the next line."""
    return cst.ParenthesizedWhitespace(
        first_line=cst.TrailingWhitespace(),
        indent=True,
        last_line=cst.SimpleWhitespace(" " * indent),
    )


def _subscript(node: cst.Subscript, indent: int, limit: int) -> cst.Subscript:
    """``tuple[...]``: what is inside on a line of its own, or each item."""
    inside = indent + INDENT
    one_line = inside + len(", ".join(map(_item, node.slice))) <= limit
    items = list(node.slice)
    if not one_line:
        items = [_on_a_line(one, inside, limit, last=one is items[-1]) for one in items]
    several = not one_line and len(items) > 1  # one item with a comma would be a tuple
    if not several:
        items[-1] = items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    before = newline(indent) if not several else cst.SimpleWhitespace("")
    return node.with_changes(
        lbracket=node.lbracket.with_changes(whitespace_after=newline(inside)),
        slice=items,
        rbracket=node.rbracket.with_changes(whitespace_before=before),
    )


def _on_a_line(
    item: cst.SubscriptElement, indent: int, limit: int, *, last: bool
) -> cst.SubscriptElement:
    index = item.slice
    if isinstance(index, cst.Index):
        index = index.with_changes(value=spread_over_lines(index.value, indent, indent, 1, limit))
    comma = cst.Comma(whitespace_after=newline(indent - INDENT if last else indent))
    return item.with_changes(slice=index, comma=comma)


def _union(
    options: list[cst.BaseExpression], indent: int, start: int, after: int, limit: int
) -> cst.BaseExpression:
    first = spread_over_lines(options[0], indent, start, 0, limit)
    for number, option in enumerate(options[1:], 2):
        ends = after if number == len(options) else 0
        operator = cst.BitOr(newline(indent), cst.SimpleWhitespace(" "))
        right = spread_over_lines(option, indent, indent + 2, ends, limit)
        first = cst.BinaryOperation(first, operator, right)
    return first


def _options(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return [*_options(node.left), *_options(node.right)]
    return [node]


def _item(item: cst.SubscriptElement) -> str:
    return _code(item.with_changes(comma=cst.MaybeSentinel.DEFAULT))


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
