"""An input of the wrong dtype, told from a model that fails: with another dtype it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from torch import nn

from shapetrace.capture.target.calling import call_model
from shapetrace.capture.target.inputs import CallInputs, from_specs
from shapetrace.capture.target.unheard import unheard
from shapetrace.dims.specs import TensorSpec
from shapetrace.errors import ShapetraceError
from shapetrace.records.trace import Failure, Trace

_OF_DTYPES = re.compile(
    r"dtype|scalar type|\b(long|int|half|float|double|bfloat16|byte|bool\w*|unsigned char|integers?)\b",
    re.IGNORECASE,
)


def check_dtypes(trace: Trace, model: nn.Module, inputs: CallInputs, device: str) -> None:
    """Refuse an input whose dtype alone made a model fail.

    Suspected is an input that the failing operation was handed as it is; it is to blame when
    the same call runs with another dtype of it.

    Args:
        trace: Of the call that failed.
        model: The model.
        inputs: What it was called with.
        device: Where.

    Raises:
        ShapetraceError: Naming the input, and the spec that runs.
    """
    failure = trace.failure
    if failure is None or inputs.specs is None or not _OF_DTYPES.search(failure.message):
        return
    for spec in _suspects(trace, failure, inputs):
        for dtype in _others(spec, model, failure):
            other = replace(spec, dtype=dtype, below=None if dtype == "bool" else spec.below)
            if _runs(model, inputs, spec, other, device):
                _refuse(failure, spec, other)


def _suspects(trace: Trace, failure: Failure, inputs: CallInputs) -> Iterator[TensorSpec]:
    """The specs of inputs that the failing operation was given, or views of them."""
    handed = {o.storage for o in failure.operands if o.storage is not None}
    roots = {number for number, scope in enumerate(trace.scopes) if not scope.path}
    seen = {
        (record.shape, record.dtype)
        for record in trace.tensors
        if record.scope in roots and record.storage in handed
    }
    assert inputs.specs is not None  # noqa: S101 - the caller has looked
    yield from (spec for spec in inputs.specs.tensors if (spec.shape, spec.dtype) in seen)


def _others(spec: TensorSpec, model: nn.Module, failure: Failure) -> list[str]:
    """Dtypes to try: what the error asks for, the weights', whole numbers."""
    from shapetrace.capture.values.members import parameters  # noqa: PLC0415 - needs torch

    weights = (str(p.dtype).removeprefix("torch.") for p in parameters(model))
    asked = ["bool"] if "bool" in failure.message.lower() else []
    found = dict.fromkeys([*asked, *weights, "float32", "int64"])
    return [dtype for dtype in found if dtype != spec.dtype]


def _runs(
    model: nn.Module, inputs: CallInputs, spec: TensorSpec, other: TensorSpec, device: str
) -> bool:
    assert inputs.specs is not None  # noqa: S101 - a spec is suspected
    tensors = tuple(other if known is spec else known for known in inputs.specs.tensors)
    made = from_specs(replace(inputs.specs, tensors=tensors), device=device)
    try:
        with unheard():
            call_model(model, made)
    except Exception:  # noqa: BLE001 - it fails for another reason too
        return False
    return True


def _refuse(failure: Failure, spec: TensorSpec, other: TensorSpec) -> None:
    place = ".".join(map(str, spec.place))
    where = f"{Path(failure.file).name}:{failure.line}"
    raise ShapetraceError(
        f"input {place} is {spec.dtype}, and the model takes {other.dtype}: write --input "
        f'"{other}" ({where}: {failure.statement.partition(chr(10))[0].strip()})'
    )
