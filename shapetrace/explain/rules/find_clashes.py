"""Which rule explains a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.rules.element_types import devices, dtypes
from shapetrace.explain.rules.registry import FailedCall, rules_of

if TYPE_CHECKING:
    from shapetrace.explain.rules.clash import Clash
    from shapetrace.records.trace import Failure


def find_clashes(failure: Failure) -> list[Clash]:
    """The clashes of a failure, by the first rule that finds any."""
    call = FailedCall(failure)
    # What tensors hold and where they lie can stop any operation: asked last.
    for function in (*rules_of(failure.operation), dtypes, devices):
        found = {clash.text: clash for clash in function(call)}
        if found:
            return list(found.values())
    return []
