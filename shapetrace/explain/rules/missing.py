"""Values that are missing: None where a tensor is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.clash import Clash, ClashSide
from shapetrace.explain.rules.registry import FailedCall, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.records.trace import Operand


@rule(r".*")
def nothing(call: FailedCall) -> Iterator[Clash]:
    """The operand that Python or torch says is None."""
    kinds = call.match(r"unsupported operand type\(s\) for [^:]+: '([\w.]+)' and '([\w.]+)'")
    found: list[Operand | None] = []
    if kinds is not None:
        found = [call.at(place) for place in (0, 1) if kinds[place + 1] == "NoneType"]
    argument = call.match(r"argument '(\w+)' \(position (\d+)\) must be \w+, not NoneType")
    if argument is not None:
        found = [call.at(int(argument[2]) - 1, argument[1])]
    if call.match(r"'NoneType' object (is not subscriptable|has no attribute)"):
        found = [call.at(-9, "self")]
    if call.match(r"cannot unpack non-iterable NoneType"):
        found = [call.at(-9, "value")]
    for operand in found:
        if operand is not None and operand.shape is None and operand.value in {"", "None"}:
            yield Clash(f"`{operand.text}` is None", (ClashSide(operand),) if operand.value else ())
