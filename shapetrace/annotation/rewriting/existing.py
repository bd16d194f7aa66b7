"""An annotation that is there already: its tensors get shapes, all that it allows stays allowed.

Runs seldom show every alternative of a union. What was declared stays declared, seen or not;
a tensor without a shape gets the one that runs showed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

_SHAPED = re.compile(r"""\bTensor\s*,\s*\\?['"]|\bParameter\s*,\s*\\?['"]""")
_BARE = {
    "Tensor": "",
    "Parameter": "",
    "FloatTensor": "Float",
    "DoubleTensor": "Float",
    "HalfTensor": "Float",
    "LongTensor": "Int",
    "IntTensor": "Int",
    "ByteTensor": "UInt",
    "BoolTensor": "Bool",
}
"""Torch's classes of tensors, and the dtype that each stands for."""
_FAMILIES = (
    frozenset({"list", "List", "Sequence", "Iterable", "Collection", "MutableSequence"}),
    frozenset({"tuple", "Tuple", "Sequence", "Iterable", "Collection"}),
    frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict"}),
)
_BUILT_IN = frozenset({"None", "int", "float", "bool", "str", "bytes", "complex"})
_LOOSE = ("Any", "object")


def has_shapes(old: cst.BaseExpression) -> bool:
    """Whether an annotation names shapes already."""
    return bool(_SHAPED.search(_code(old)))


def refined(
    new: cst.BaseExpression,
    old: cst.BaseExpression,
    *,
    tensor: Sequence[str] = (),
    replace: bool = False,
) -> cst.BaseExpression | None:
    """The old annotation with the shapes of the new one, and all its alternatives.

    Args:
        new: What the runs showed.
        old: What the source says.
        tensor: Other names of the file for torch's tensor.
        replace: Whether shapes that are there, and ``Any``, give way too.

    Returns:
        The annotation; None where it may be another name for what was seen, or allows all.
    """
    quoted = isinstance(old, cst.SimpleString)
    if isinstance(old, cst.SimpleString):
        try:
            old = cst.parse_expression(str(old.evaluated_value))
        except cst.ParserSyntaxError:
            return None
    merge = _Merge(frozenset(tensor), replace=replace)
    options = merge.options(_options(new), _options(old))
    if options is None:
        return None
    text = " | ".join(options)
    if any(part in text for part in ("'", '"')) and merge.forward:
        return cst.SimpleString(f"'{text}'") if "'" not in text else None
    if quoted and not merge.plain:
        return cst.SimpleString(f"'{text}'") if "'" not in text else None
    return cst.parse_expression(text)


class _Merge:
    """Old alternatives made precise by new ones.

    Attributes:
        plain: Whether only builtins and tensors were kept, which need no quotes.
        forward: Whether a name in quotes was kept.
    """

    def __init__(self, tensor: frozenset[str], *, replace: bool) -> None:
        self._tensor = tensor
        self._replace = replace
        self.plain = True
        self.forward = False

    def options(
        self, new: Sequence[cst.BaseExpression], old: Sequence[cst.BaseExpression]
    ) -> list[str] | None:
        """The alternatives as text, None last; None when no old one stands for a new one."""
        left = [_code(option) for option in new]
        nodes = dict(zip(left, new, strict=True))
        found: list[str] = []
        matched = False
        for option in old:
            match = [code for code in left if self._stands_for(option, nodes[code], code)]
            if not match:
                found.append(self._kept(option))
                continue
            matched |= match != ["None"]
            found += [self._made(option, nodes[code], code) for code in match]
        if not matched and not set(left) <= set(found) and not self._forbids(old):
            return None
        covered = {code for code in left for o in old if self._stands_for(o, nodes[code], code)}
        found += [code for code in left if code not in covered]
        distinct = list(dict.fromkeys(found))
        return [o for o in distinct if o != "None"] + [o for o in distinct if o == "None"]

    def _forbids(self, old: Sequence[cst.BaseExpression]) -> bool:
        """Whether an annotation surely does not allow what was seen, or gives way to it."""
        names = [_code(option) for option in old]
        known = _BUILT_IN | {name for family in _FAMILIES for name in family} | set(_BARE)
        sure = all(_head(o) in known for o in old)
        loose = any(name.rpartition(".")[2] in _LOOSE for name in names)
        return not loose and (self._replace or (sure and names != ["None"]))

    def _stands_for(self, old: cst.BaseExpression, new: cst.BaseExpression, code: str) -> bool:
        """Whether an old alternative is the less precise form of a new one."""
        text = _code(old)
        if text == code:
            return True
        if _is_array(code):
            return self._is_tensor(text, code)
        if text in _LOOSE or text.rpartition(".")[2] in _LOOSE:
            return self._replace
        one, other = _head(old), _head(new)
        return any(one in family and other in family for family in _FAMILIES)

    def _is_tensor(self, text: str, code: str) -> bool:
        name = text.rpartition(".")[2]
        if name in _LOOSE:
            return self._replace
        if text in self._tensor:
            return True
        if name in _BARE:
            return code.startswith(_BARE[name]) or not _BARE[name]
        return self._replace and _is_array(text) and _axes(text) == _axes(code)

    def _made(self, old: cst.BaseExpression, new: cst.BaseExpression, code: str) -> str:
        if _is_array(code) or not isinstance(new, cst.Subscript):
            return code
        if not isinstance(old, cst.Subscript):
            return code
        ours, theirs = _arguments(old), _arguments(new)
        ends = _code(ours[-1]) == "..."
        if _head(old) in _FAMILIES[1] and _head(new) in ("tuple", "Tuple"):
            if ends or _head(old) not in ("tuple", "Tuple"):
                inside = [option for one in theirs for option in _options(one)]
                items = [self._inside(inside, _options(ours[0]), _code(ours[0]))]
                return f"{_code(old.value)}[{', '.join(items + ['...'] * ends)}]"
            if len(ours) != len(theirs) or _code(theirs[-1]) == "...":
                self._kept(old)
                return code if _code(theirs[-1]) == "..." else f"{_code(old)} | {code}"
        items = [
            self._inside(_options(theirs[i]), _options(one), _code(one))
            for i, one in enumerate(ours)
            if i < len(theirs)
        ]
        return f"{_code(old.value)}[{', '.join(items)}]"

    def _inside(
        self, new: Sequence[cst.BaseExpression], old: Sequence[cst.BaseExpression], text: str
    ) -> str:
        real = [one for one in new if _code(one) != "..."]
        found = self.options(real, old)
        return " | ".join(found) if found is not None else text

    def _kept(self, option: cst.BaseExpression) -> str:
        code = _code(option)
        if isinstance(option, cst.SimpleString):
            self.forward = True
            return str(option.evaluated_value)
        name = code.rpartition(".")[2]
        self.plain &= code in _BUILT_IN or name in _BARE or code in self._tensor
        return code


def _is_array(code: str) -> bool:
    return bool(_SHAPED.search(code)) and not re.match(r"(tuple|list|dict)\[", code, re.IGNORECASE)


def _axes(code: str) -> int | str:
    """How many axes a shape has; ``...`` where that is open."""
    dims = re.findall(r"""['"]([^'"]*)['"]""", code)
    words = dims[0].split() if dims else []
    return "..." if any(word.startswith(("*", "...")) for word in words) else len(words)


def _head(node: cst.BaseExpression) -> str:
    value = node.value if isinstance(node, cst.Subscript) else node
    return _code(value).rpartition(".")[2]


def _arguments(node: cst.Subscript) -> list[cst.BaseExpression]:
    return [part.slice.value for part in node.slice if isinstance(part.slice, cst.Index)]


def _options(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The alternatives of a union in any spelling."""
    return list(_each(node))


def _each(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match node:
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            yield from _each(left)
            yield from _each(right)
        case cst.Subscript(value=value, slice=parts) if _head(value) in ("Optional", "Union"):
            for part in parts:
                if isinstance(part.slice, cst.Index):
                    yield from _each(part.slice.value)
            if _head(value) == "Optional":
                yield cst.Name("None")
        case _:
            yield node


def _code(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node).strip()
