"""Watch a model in Python: `record` around any code, `trace` for one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from shapetrace.explain import explain
from shapetrace.report.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from torch import nn

    from shapetrace.naming.name_trace import Probing


class Watch:
    """A context manager; `trace` holds the result once the block has ended.

    The model is left as it was. An exception that leaves the block is not kept: it goes on
    with the explanation as a note, and the trace up to it is there.
    """

    def __init__(self, model: nn.Module | None, **options: Any) -> None:
        from shapetrace.capture.recording import record  # noqa: PLC0415 - needs torch

        self._recording = record(model, **options)
        self._trace: Traced | None = None
        self.probing: Probing | None = None
        """What naming probes saw of the model; names are given from it when the trace is read."""

    def __enter__(self) -> Self:
        """Start recording.

        Raises:
            ShapetraceError: Another recording is running in this process.
        """
        self._recording.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop recording, and explain what went wrong if something did."""
        self._recording.__exit__(kind, error, where)
        if isinstance(error, Exception):
            error.add_note(explain(self.trace))

    @property
    def trace(self) -> Traced:
        """What was recorded; available once the block has ended."""
        if self._trace is None:
            from shapetrace.naming.name_trace import named  # noqa: PLC0415

            self._trace = Traced.of(named(self._recording.trace, self.probing))
        return self._trace


def record(model: nn.Module | None, **options: Any) -> Watch:
    """Watch whatever runs inside a ``with`` block; its `trace` is there afterwards.

    Args:
        model: The module whose calls are to be named; None to watch plain functions.
        options: As for `shapetrace.capture.record`.

    Raises:
        ShapetraceError: At the start of the block, if another recording is running.

    Example:
        >>> import torch, shapetrace
        >>> model = torch.nn.Linear(4, 3)
        >>> with shapetrace.record(model) as rec:
        ...     loss = model(torch.ones(2, 4)).logsumexp(-1).mean()
        ...     loss.backward()
        >>> {op.phase for op in rec.trace.ops} == {"forward", "backward"}
        True
    """
    return Watch(model, **options)


def trace(
    model: nn.Module, *args: Any, dims: Mapping[str, int] | None = None, **kwargs: Any
) -> Traced:
    """Call a model once and return the trace of the call, every axis named.

    The model is called once, as it is: in its mode, on its device, with gradients where
    they are on. Names come from runs of a weightless copy at other sizes.

    Args:
        model: The module.
        args: Its arguments.
        dims: Names of the inputs' axes by size, such as ``{"B": 2, "n": 16}``; without
            them names are guessed by position, and marked as guessed. A name whose size
            no input has names the model's own axes of that size, where nothing else does.
        kwargs: Its keyword arguments.

    Raises:
        Exception: What the model raises, with the explanation as a note.

    Example:
        >>> import torch, shapetrace
        >>> model = torch.nn.Linear(4, 3)
        >>> traced = shapetrace.trace(model, torch.ones(2, 5, 4), dims={"B": 2, "n": 5})
        >>> "240 FLOP" in str(traced)  # what print(traced) shows
        True
    """
    from shapetrace.api.preparing.probe_names import probed  # noqa: PLC0415 - needs torch
    from shapetrace.capture.target.inputs import CallInputs  # noqa: PLC0415
    from shapetrace.capture.target.instances import subject_of  # noqa: PLC0415

    subject = subject_of(model, CallInputs(args, kwargs), dims)
    probing, wanted = probed(subject)
    watch = record(model, wanted=wanted or None, sizes={**subject.dims, **subject.given})
    watch.probing = probing
    with watch:
        model(*args, **kwargs)
    return watch.trace
