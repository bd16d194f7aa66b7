"""What a run left behind: its records, questions about them, and their saved form."""

from shapetrace.records.queries import (
    LivePoint,
    TraceIndex,
    live_bytes,
    live_storages,
    module_path,
    peak_bytes,
)
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
    "LivePoint",
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
    "TraceIndex",
    "live_bytes",
    "live_storages",
    "load",
    "module_path",
    "peak_bytes",
    "save",
]
