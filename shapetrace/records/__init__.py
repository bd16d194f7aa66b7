"""What a run left behind: its records, and their saved form."""

from shapetrace.records.storage import load, save
from shapetrace.records.trace import (
    FORMAT_VERSION,
    Failure,
    Operand,
    OpRecord,
    ParameterRecord,
    Phase,
    RecordKind,
    Scope,
    ScopeKind,
    Shape,
    Site,
    StorageKind,
    StorageRecord,
    TensorRecord,
    Trace,
)

__all__ = [
    "FORMAT_VERSION",
    "Failure",
    "OpRecord",
    "Operand",
    "ParameterRecord",
    "Phase",
    "RecordKind",
    "Scope",
    "ScopeKind",
    "Shape",
    "Site",
    "StorageKind",
    "StorageRecord",
    "TensorRecord",
    "Trace",
    "load",
    "save",
]
