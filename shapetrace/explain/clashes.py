"""Which sizes of a failed operation clash: one rule per kind of operation.

The rules are those of torch's documentation for each operation; where none speaks, the
numbers in the error's own text are looked up among the operands' sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import prod

from shapetrace.explain.clash import Clash, Part
from shapetrace.explain.element_types import devices, dtypes
from shapetrace.records.trace import Failure, Operand

Rule = Callable[[Failure, Sequence[Operand]], Iterator[Clash]]


def find_clashes(failure: Failure) -> list[Clash]:
    """The clashes of a failure, by the first rule that finds any."""
    tensors = [operand for operand in failure.operands if operand.shape is not None]
    for rule in (dtypes, devices, *_rules(failure.operation), _by_numbers):
        found = {clash.text: clash for clash in reversed(list(rule(failure, tensors)))}
        if found:
            return list(reversed(found.values()))
    return []


def _rules(operation: str) -> list[Rule]:
    return [rule for names, rule in _BY_NAME if re.fullmatch(names, operation)]


def _shape(operand: Operand) -> tuple[int, ...]:
    return operand.shape or ()


def _axis(operand: Operand, axis: int) -> str:
    return f"axis {axis} of `{operand.text}` is {_shape(operand)[axis]}"


def _role(tensors: Sequence[Operand], role: str) -> Operand | None:
    return next((operand for operand in tensors if operand.role == role), None)


def _pair(first: Operand, i: int, second: Operand, j: int, fix: str = "") -> Clash:
    """Two axes that should be equal; negative axes are counted from the end."""
    i, j = i % len(_shape(first)), j % len(_shape(second))
    text = f"{_axis(first, i)}, {_axis(second, j)}"
    return Clash(text, (Part(first, i), Part(second, j)), fix)


def _matmul(_: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    if len(tensors) < 2:  # noqa: PLR2004 - two sides
        return
    a, b = _sides(tensors)
    if not _shape(a) or not _shape(b):
        return
    inner = -2 if len(_shape(b)) > 1 else -1
    if _shape(a)[-1] != _shape(b)[inner]:
        yield _pair(a, -1, b, inner, "transpose one side, or project one to the other's width")
        return
    for offset in range(3, min(len(_shape(a)), len(_shape(b))) + 1):
        if not _broadcasts(_shape(a)[-offset], _shape(b)[-offset]):
            yield _pair(a, -offset, b, -offset)


def _sides(tensors: Sequence[Operand]) -> tuple[Operand, Operand]:
    """The factors of a product, of which `addmm` and the like come after a summand."""
    named = [o for o in tensors if o.role in {"mat1", "mat2", "batch1", "batch2"}]
    sides = named or tensors
    return sides[0], sides[1]


def _linear(_: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    weight = _role(tensors, "weight") or _role(tensors, "1")
    given = _role(tensors, "input") or _role(tensors, "0")
    if weight is None or given is None or not _shape(given) or len(_shape(weight)) < 2:  # noqa: PLR2004
        return
    if _shape(given)[-1] != _shape(weight)[1]:
        width, module = _shape(given)[-1], weight.text.removesuffix(".weight")
        fix = f"give `{given.text}` a last axis of {_shape(weight)[1]}"
        if module != weight.text:
            fix += f", or make `{module}` with in_features={width}"
        yield _pair(given, -1, weight, 1, fix)


def _recurrent(_: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    given = _role(tensors, "input")
    weight = _role(tensors, "weight_ih_l0") or _role(tensors, "weight_ih")
    if given is not None and weight is not None and _shape(given):
        yield from _widths(given, weight, "input_size")


def _attention(_: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    packed = _role(tensors, "in_proj_weight")
    given = [operand for operand in tensors if operand.role in {"input", ""}]
    for operand, name, size in zip(given, "qkv", ("embed_dim", "kdim", "vdim"), strict=False):
        weight = packed or _role(tensors, f"{name}_proj_weight")
        if weight is not None and _shape(operand):
            yield from _widths(operand, weight, size)


def _widths(given: Operand, weight: Operand, name: str) -> Iterator[Clash]:
    """The last axis of what a module is given, against the columns of its weight."""
    if _shape(given)[-1] != _shape(weight)[1]:
        module = weight.text.removesuffix(f".{weight.role}")
        fix = f"give `{given.text}` a last axis of {_shape(weight)[1]}"
        yield _pair(
            given, -1, weight, 1, f"{fix}, or make `{module}` with {name}={_shape(given)[-1]}"
        )


def _convolution(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    weight = _role(tensors, "weight") or _role(tensors, "1")
    given = _role(tensors, "input") or _role(tensors, "0")
    if weight is None or given is None:
        return
    space = len(_shape(weight)) - 2
    if len(_shape(given)) not in (space + 1, space + 2):
        text = f"`{given.text}` has {len(_shape(given))} axes, a convolution in {space} takes "
        yield Clash(f"{text}{space + 2} (batch, channels, ...)", (Part(given),))
        return
    channels = re.search(r"to have (\d+) channels, but got (\d+) channels", failure.message)
    if channels:
        axis = len(_shape(given)) - space - 1
        wanted, got = channels.groups()
        module = weight.text.removesuffix(".weight")
        text = f"{_axis(given, axis)} (channels), `{module}` takes {wanted}"
        fix = f"give `{given.text}` {wanted} channels, or make `{module}` with in_channels={got}"
        weight_axis = 0 if "transpose" in failure.operation.lower() else 1
        yield Clash(text, (Part(given, axis), Part(weight, weight_axis)), fix)


def _norm(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    given, weight = _role(tensors, "input"), _role(tensors, "weight")
    if given is None or weight is None or not _shape(given):
        return
    axis = -1 if "Layer" in failure.operation or "RMS" in failure.operation else 1
    if len(_shape(given)) > abs(axis) - (axis < 0) and _shape(given)[axis] != _shape(weight)[-1]:
        fix = f"make `{weight.text.removesuffix('.weight')}` for {_shape(given)[axis]}"
        yield _pair(given, axis, weight, -1, fix)


def _cat(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    dim = _number(failure, ("dim", "axis", "1"))
    for first, second in combinations(tensors, 2):
        a, b = _shape(first), _shape(second)
        if len(a) != len(b):
            text = f"`{first.text}` has {len(a)} axes, `{second.text}` has {len(b)}"
            yield Clash(text, (Part(first), Part(second)), "bring them to the same number of axes")
            return
        skip = dim % len(a) if a and failure.operation != "stack" else -1
        for axis in range(len(a)):
            if axis != skip and a[axis] != b[axis]:
                yield _pair(first, axis, second, axis)
        if any(a[axis] != b[axis] for axis in range(len(a)) if axis != skip):
            return


def _number(failure: Failure, roles: tuple[str, ...]) -> int:
    for operand in failure.operands:
        if operand.role in roles and re.fullmatch(r"-?\d+", operand.value):
            return int(operand.value)
    return 0


def _broadcast(_: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    for first, second in combinations(tensors, 2):
        a, b = _shape(first), _shape(second)
        for offset in range(1, min(len(a), len(b)) + 1):
            if not _broadcasts(a[-offset], b[-offset]):
                yield _pair(
                    first, -offset, second, -offset, "make them equal, or one of them 1 (unsqueeze)"
                )


def _broadcasts(a: int, b: int) -> bool:
    return a == b or 1 in (a, b)


def _view(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    found = re.search(r"shape '\[([-\d, ]*)\]' is invalid for input of size (\d+)", failure.message)
    if not found or not tensors:
        return
    wanted = [int(size) for size in found[1].split(",") if size.strip()]
    known = prod(size for size in wanted if size != -1)
    asked = " x ".join(map(str, wanted))
    text = f"`{tensors[0].text}` has {prod(_shape(tensors[0]))} elements; {asked}"
    if -1 in wanted:
        yield Clash(f"{text} needs a multiple of {known}", (Part(tensors[0]),))
    else:
        yield Clash(f"{text} is {known}", (Part(tensors[0]),))


def _strides(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    if "view size is not compatible" in failure.message and tensors:
        name = tensors[0].text
        text = f"`{name}` is not contiguous, and a view cannot reorder memory"
        yield Clash(text, (Part(tensors[0]),), f"use `{name}.reshape(...)`")


def _embedding(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    weight = _role(tensors, "weight") or next((o for o in tensors if o.role == "1"), None)
    given = _role(tensors, "input") or _role(tensors, "0")
    if weight is None or given is None or "out of range" not in failure.message:
        return
    rows, module = _shape(weight)[0], weight.text.removesuffix(".weight")
    text = f"`{given.text}` holds {given.value}, `{module}` has rows 0 to {rows - 1}"
    fix = f"make `{module}` with num_embeddings above {given.value.rpartition(' ')[2]}"
    yield Clash(text, (Part(given), Part(weight, 0)), f"{fix}, or keep the indices below {rows}")


def _einsum(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    equation = next((o.value for o in failure.operands if "'" in o.value), "").strip("'\"")
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    bound: dict[str, Part] = {}
    if "." in equation or len(terms) != len(tensors):
        return
    for term, operand in zip(terms, tensors, strict=True):
        if len(term) != len(_shape(operand)):
            text = (
                f"`{operand.text}` has {len(_shape(operand))} axes, its term `{term}` {len(term)}"
            )
            yield Clash(text, (Part(operand),))
            return
        for axis, letter in enumerate(term):
            known = bound.setdefault(letter, Part(operand, axis))
            size = _shape(known.operand)[known.axis or 0]
            if not _broadcasts(size, _shape(operand)[axis]):
                pair = _pair(known.operand, known.axis or 0, operand, axis)
                yield Clash(f"`{letter}` is two sizes: {pair.text}", pair.parts)


def _index(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    owner = _role(tensors, "self")
    if owner is None:
        return
    found = re.search(
        r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", failure.message
    )
    if found and int(found[2]) < len(_shape(owner)):
        axis = int(found[2])
        yield Clash(f"index {found[1]}, but {_axis(owner, axis)}", (Part(owner, axis),))


_PLACE = re.compile(r"\b(dim(ension)?|axis|argument|position|index|number) #?\d+\b")
"""Numbers that are no sizes."""
_SIZES = re.compile(r"\[([\d, ]+)\](.*?)\[([\d, ]+)\]")


def _differing(sizes: re.Match[str]) -> str:
    """Of two lists of sizes, those that are not the same."""
    left, right = (sizes[number].split(",") for number in (1, 3))
    if len(left) != len(right):
        return sizes[0]
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a.strip() != b.strip()]
    return " ".join(word for pair in pairs for word in pair)


def _by_numbers(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    """Sizes that the error's text names, where just one operand has each."""
    parts = []
    message = _PLACE.sub("", _SIZES.sub(_differing, failure.message))
    for number in dict.fromkeys(re.findall(r"(?<![\w.])\d+(?![\w.]*\()", message)):
        axes = [
            Part(operand, axis)
            for operand in tensors
            for axis, size in enumerate(_shape(operand))
            if size == int(number) and size > 1
        ]
        if axes:
            parts.append(axes[0])
    if parts:
        texts = (_axis(part.operand, part.axis or 0) for part in parts)
        yield Clash(", ".join(texts), tuple(parts))


_BY_NAME: list[tuple[str, Rule]] = [
    (r"@|@=|matmul|mm|bmm|mv|addmm|baddbmm", _matmul),
    (r"Linear|linear", _linear),
    (r"LSTM|GRU|RNN|(LSTM|GRU|RNN)Cell", _recurrent),
    (r"MultiheadAttention", _attention),
    (r"(Lazy)?Conv(Transpose)?\dd|conv(_transpose)?\dd", _convolution),
    (r"\w*Norm\w*", _norm),
    (r"cat|concat|concatenate|stack|[hvd]stack", _cat),
    (r"view|reshape|unflatten|view_as|Unflatten", _view),
    (r"view|view_as|flatten", _strides),
    (r"Embedding|embedding|EmbeddingBag", _embedding),
    (r"einsum", _einsum),
    (r"index", _index),
    (r"[-+*/%&|^]+=?|compare|add|sub|mul|div|where|maximum|minimum|masked_fill|lerp", _broadcast),
    (r"expand|expand_as|addcmul|mse_loss|MSELoss|l1_loss|copy_|add_|mul_", _broadcast),
]
