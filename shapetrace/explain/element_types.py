"""Operands that do not go together by what they hold or where they lie."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shapetrace.explain.clash import Clash, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shapetrace.records.trace import Failure, Operand

_DTYPES = re.compile(r"dtype|scalar type|\b(long|int|float|half|double|bool)(tensor)?\b")
_INTEGERS = re.compile(r"\b(long|int|int64|int32)(tensor)?\b|int32/int64|\bind(ex|ices)\b")
_INDEX_ROLES = (
    (r"Embedding(Bag)?|embedding(_bag)?", ("input", "0")),
    (r"CrossEntropyLoss|NLLLoss|cross_entropy|nll_loss", ("target", "1", "")),
    (r"gather|index_select|take_along_dim|(index|scatter)_?\w*", ("index", "indices", "1", "0")),
    (r"take|one_hot", ("index", "tensor", "0")),
)
"""By operation, the places in its call of what holds indices."""


def dtypes(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    """Numbers of two kinds, or indices that are no integers."""
    message = failure.message.lower()
    if not _DTYPES.search(message) or "same device" in message:
        return
    kinds = {operand.dtype for operand in tensors if operand.dtype}
    roles = [roles for names, roles in _INDEX_ROLES if re.fullmatch(names, failure.operation)]
    floats = [o for o in tensors if "float" in o.dtype or "complex" in o.dtype]
    indices = [o for o in floats if roles and o.role in roles[0]]
    if indices and _INTEGERS.search(message):
        text = f"`{indices[0].text}` is {indices[0].dtype}, and indices must be integers"
        yield Clash(text, (Part(indices[0]),), f"pass integers: `{indices[0].text}.long()`")
    elif len(kinds) > 1:
        texts = (f"`{o.text}` is {o.dtype}" for o in tensors if o.dtype)
        fix = f"convert one: `{tensors[0].text}.to({tensors[-1].text}.dtype)`"
        yield Clash(", ".join(texts), tuple(Part(o) for o in tensors), fix)


def devices(failure: Failure, tensors: Sequence[Operand]) -> Iterator[Clash]:
    """Tensors on two devices."""
    devices = {operand.device for operand in tensors if operand.device}
    if "device" in failure.message and len(devices) > 1:
        text = ", ".join(f"`{o.text}` is on {o.device}" for o in tensors if o.device)
        fix = f"move one: `{tensors[0].text}.to({tensors[-1].text}.device)`"
        yield Clash(text, tuple(Part(operand) for operand in tensors), fix)
