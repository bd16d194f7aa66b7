"""What the source declares of each value of a run, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from shapetrace.capture.declared.evaluate import Declarations, Declared, unjudged, verdicts
from shapetrace.capture.declared.namespaces import namespace
from shapetrace.capture.recorder.assemble import Tables
from shapetrace.capture.source.registry import REGISTRY
from shapetrace.records.trace import TensorRecord


def declare(
    tables: Tables, functions: Mapping[str, Sequence[FunctionType]], *, judge: bool = True
) -> None:
    """Give each record its declaration and, if asked, the verdict, once per distinct call.

    Args:
        tables: Of the run; its records are replaced.
        functions: The functions that were looked into, by file.
        judge: Whether to ask jaxtyping.
    """
    owners = {tables.bindings[tensor.site].owner for tensor in tables.tensors}
    declarations = Declarations(
        {owner: namespace(REGISTRY.functions[owner], functions) for owner in owners}
    )
    calls: dict[int, list[int]] = {}
    for number, tensor in enumerate(tables.tensors):
        if tables.bindings[tensor.site].annotation:
            calls.setdefault(tensor.scope, []).append(number)
    known: dict[tuple[Any, ...], list[TensorRecord]] = {}
    for scope, numbers in calls.items():
        records = [tables.tensors[number] for number in numbers]
        held = tables.held.get(scope, ())
        key = (held, *((r.site, r.element, r.shape, r.dtype, r.layout) for r in records))
        if key not in known:
            call = [(r, _declared(declarations, tables, r)) for r in records]
            known[key] = verdicts(call) if judge else unjudged(call)
        for number, record, judged in zip(numbers, records, known[key], strict=True):
            if judge and tables.bindings[record.site].inherited and judged.holds is not True:
                continue
            tables.tensors[number] = replace(record, declared=judged.declared, holds=judged.holds)


def _declared(declarations: Declarations, tables: Tables, record: TensorRecord) -> Declared | None:
    binding = tables.bindings[record.site]
    name = binding.site.name if binding.site.kind in ("argument", "return") else ""
    held = tables.held.get(record.scope, ())
    return declarations.at(binding.owner, binding.annotation, record.element, name, held)
