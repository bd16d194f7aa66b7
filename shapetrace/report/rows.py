"""Every number of a report, decided once; the formats only lay the rows out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shapetrace.dims.meaning import MARKS, Evidence
from shapetrace.records.trace import Shape
from shapetrace.report.language.meanings import meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.cost import Prices
    from shapetrace.records.trace import Scope, TensorRecord, Trace
    from shapetrace.report.language.words import Language

Level = Literal["tensors", "modules", "ops"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a report.

    Attributes:
        at: Clock, which orders rows and calls.
        scope: Index of the call it belongs to.
        path: That call's dotted path; empty for the root.
        name: The tensor's, module class's or operator's name.
        kind: ``argument``, ``local``, ``attribute``, ``return``, ``module``, ``function``, ``op``.
        dims: The named shape as one string; empty for a scalar. An axis without a name
            stands as its number.
        shape: Sizes; None where there is no tensor (a module that returned none).
        dtype: Dtype of the tensor.
        bytes: Bytes of the tensor's elements.
        flops: FLOPs that are counted for the statement, call or operator, calls inside it
            included.
        complete: Whether every operator of it has a formula; if not, `flops` is a lower
            bound.
        meaning: What it is, in words; empty when the spec does not name it.
        file: Source file.
        line: Line of the statement.
        storage: Index of the tensor's storage; None when unknown.
        internal: Whether the code is torch's own.
        evidence: Where the name of each axis comes from (`Dim.evidence`); empty where the
            axes were not named.
    """

    at: int
    scope: int
    path: str
    name: str
    kind: str
    dims: str
    shape: Shape | None
    dtype: str
    bytes: int
    flops: int
    complete: bool
    meaning: str
    file: str
    line: int
    storage: int | None = None
    internal: bool = False
    evidence: tuple[Evidence, ...] = ()

    @property
    def marked_dims(self) -> str:
        """The named shape for people: a name that no probe bears out carries a mark."""
        if not {"guess", "attribute"} & set(self.evidence):
            return self.dims
        names = zip(self.dims.split(), self.evidence, strict=True)
        return " ".join(name + MARKS.get(evidence, "") for name, evidence in names)


def named_shape(record: TensorRecord) -> str:
    """A tensor's dims as one string: as named, else as declared, else its sizes."""
    if record.dims is not None:
        return " ".join(dim.name for dim in record.dims)
    declared = record.declared.shapes if record.declared else ()
    if len(declared) == 1 and record.holds is not False:
        return declared[0].dims.strip()
    return " ".join(map(str, record.shape))


def _evidence(record: TensorRecord | None) -> tuple[Evidence, ...]:
    return tuple(dim.evidence for dim in (record.dims if record else None) or ())


def tensor_rows(trace: Trace, prices: Prices, language: Language) -> list[Row]:
    """A row for every named value, torch's own code included (marked ``internal``)."""
    return [_tensor_row(trace, prices, language, record) for record in trace.tensors]


def _is_ours(file: str) -> bool:
    """Whether a value is of the typed Transformer: elsewhere its name may mean anything."""
    return "shapetrace/model/" in file.replace("\\", "/")


def _tensor_row(trace: Trace, prices: Prices, language: Language, record: TensorRecord) -> Row:
    site = trace.sites[record.site]
    counted, complete = prices.between(record.since, record.at)
    dims = named_shape(record)
    return Row(
        at=record.at,
        scope=record.scope,
        path=trace.scopes[record.scope].path,
        name=site.name + record.element,
        kind=site.kind,
        dims=dims,
        shape=record.shape,
        dtype=record.dtype,
        bytes=record.nbytes,
        flops=counted,
        complete=complete,
        meaning=meaning(site.name, dims, language) if _is_ours(site.file) else "",
        file=site.file,
        line=site.line,
        storage=record.storage,
        internal=site.internal,
        evidence=_evidence(record),
    )


def module_rows(trace: Trace, prices: Prices) -> list[Row]:
    """A row for every call, with the shape of what it returned (its last tensor result)."""
    results = _returned(trace)
    return [
        _module_row(index, scope, results.get(index), prices)
        for index, scope in enumerate(trace.scopes)
    ]


def _returned(trace: Trace) -> dict[int, TensorRecord]:
    """The first tensor of each call's last return statement."""
    results: dict[int, TensorRecord] = {}
    for record in trace.tensors:
        if trace.sites[record.site].kind == "return":
            known = results.get(record.scope)
            if known is None or known.since != record.since:
                results[record.scope] = record
    return results


def _module_row(index: int, scope: Scope, result: TensorRecord | None, prices: Prices) -> Row:
    counted, complete = prices.between(scope.start, scope.end)
    return Row(
        at=scope.start,
        scope=index,
        path=scope.path,
        name=scope.type_name,
        kind=scope.kind,
        dims=named_shape(result) if result else "",
        shape=result.shape if result else None,
        dtype=result.dtype if result else "",
        bytes=result.nbytes if result else 0,
        flops=counted,
        complete=complete,
        meaning="",
        file=scope.file,
        line=scope.line,
        storage=result.storage if result else None,
        evidence=_evidence(result),
    )


def op_rows(trace: Trace, prices: Prices) -> list[Row]:
    """A row for every operator, with the shape of its first result."""
    return list(_op_rows(trace, prices))


def _op_rows(trace: Trace, prices: Prices) -> Iterator[Row]:
    for op, counted in zip(trace.ops, prices.flops, strict=True):
        scope = trace.scopes[op.scope]
        shape = op.outputs[0] if op.outputs else None
        yield Row(
            at=op.at,
            scope=op.scope,
            path=scope.path,
            name=op.name,
            kind="op",
            dims=" ".join(map(str, shape or ())),
            shape=shape,
            dtype=op.dtype,
            bytes=op.nbytes,
            flops=counted or 0,
            complete=counted is not None,
            meaning=op.saw,
            file=scope.file,
            line=scope.line,
        )
