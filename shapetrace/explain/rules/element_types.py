"""Operands that do not go together by what they hold or where they lie."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide, Fix, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shapetrace.explain.rules.registry import FailedCall
    from shapetrace.records.trace import Operand

_DTYPES = re.compile(r"dtype|scalar type|\b(long|int|float|half|double|bool)(tensor)?\b")
_INTEGERS = re.compile(r"\b(long|int|int64|int32)(tensor)?\b|int32/int64|\bind(ex|ices)\b")
_INDEX_ROLES = (
    (r"Embedding(Bag)?|embedding(_bag)?", ("input", "0")),
    (r"CrossEntropyLoss|NLLLoss|cross_entropy|nll_loss", ("target", "1", "")),
    (r"gather|index_select|take_along_dim|(index|scatter)_?\w*", ("index", "indices", "1", "0")),
    (r"take|one_hot", ("index", "tensor", "0")),
)
"""By operation, the places in its call of what holds indices."""


_ALIASES = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
    "uint8": "byte",
}
"""Torch's other names of dtypes."""


def dtypes(call: FailedCall) -> Iterator[Clash]:
    """Numbers of two kinds, or indices that are no integers."""
    message = call.message.lower()
    if not _DTYPES.search(message) or "same device" in message:
        return
    roles = [roles for names, roles in _INDEX_ROLES if re.fullmatch(names, call.operation)]
    floats = [o for o in call.tensors if "float" in o.dtype or "complex" in o.dtype]
    indices = [o for o in floats if roles and o.role in roles[0]]
    if indices and _INTEGERS.search(message):
        text = f"`{indices[0].text}` is {indices[0].dtype}, and indices must be integers"
        source = f"{indices[0].text}.long()"
        yield Clash(
            text, (ClashSide(indices[0]),), (replace(indices[0], source, f"pass `{source}`"),)
        )
        return
    named = [o for o in call.tensors if o.dtype and _is_named(o.dtype, message)]
    if len({operand.dtype for operand in named}) > 1:
        texts = (f"`{o.text}` is {o.dtype}" for o in named)
        yield Clash(", ".join(texts), tuple(ClashSide(o) for o in named), _converted(named))


def _is_named(dtype: str, message: str) -> bool:
    """Whether a message speaks of a dtype."""
    names = {dtype, _ALIASES.get(dtype, dtype)}
    return any(re.search(rf"\b{name}\b", message) for name in names)


def _converted(named: Sequence[Operand]) -> tuple[Fix, ...]:
    """One that is no module's own, converted to the other's."""
    given = next((o for o in named if not o.line), None)
    other = next((o for o in named if given is not None and o.dtype != given.dtype), None)
    if given is None or other is None:
        return ()
    source = f"{given.text}.to({other.text}.dtype)"
    return (replace(given, source, f"convert one: `{source}`"),)


def devices(call: FailedCall) -> Iterator[Clash]:
    """Tensors on two devices."""
    found = {operand.device for operand in call.tensors if operand.device}
    if "device" in call.message and len(found) > 1:
        text = ", ".join(f"`{o.text}` is on {o.device}" for o in call.tensors if o.device)
        yield Clash(text, tuple(ClashSide(operand) for operand in call.tensors))
