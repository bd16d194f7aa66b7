"""Watch a model in Python: `record` around any code, `trace` for one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from shapetrace.api.preparing.probe_names import probed
from shapetrace.capture.backward import BackwardPass
from shapetrace.capture.recording import Recording
from shapetrace.capture.recording import record as record_model
from shapetrace.capture.target.given import check_dims
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.instances import subject_of
from shapetrace.capture.target.target import Target, made_from
from shapetrace.capture.values.inner_tensors import is_packed
from shapetrace.capture.values.members import set_training
from shapetrace.explain import explain
from shapetrace.naming.name_trace import Probing, named
from shapetrace.report.traced import Traced

if TYPE_CHECKING:
    from torch import nn

    from shapetrace.capture.source.discover import Wanted
    from shapetrace.capture.target.subject import Subject


class Watch:
    """A context manager; `trace` holds the result once the block has ended.

    The model is left as it was. An exception that leaves the block is not kept: it goes on
    with the explanation as a note, and the trace up to it is there.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._trace: Traced | None = None
        self.probing: Probing | None = None
        """What naming probes saw of the model; names are given from it when the trace is read."""
        self.note = ""
        """What is to be said first of the run; nothing where empty."""

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
            found = named(self._recording.trace, self.probing)
            self._trace = Traced.of(found, notes=(*filter(None, [self.note]), *found.notes))
        return self._trace


def record(
    model: nn.Module | None,
    *,
    wanted: Wanted | None = None,
    operators: bool = True,
    check: bool = True,
    repeats: bool = True,
    target: str = "",
    config: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Watch:
    """Watch whatever runs inside a ``with`` block; its `trace` is there afterwards.

    Args:
        model: The module whose calls are to be named; None to watch plain functions.
        wanted: By source file, the first lines of the functions to look into, None for all
            of a file's; what the model's forwards reach by name when None.
        operators: Whether operators, and with them FLOPs and memory, are recorded.
        check: Whether declared annotations are checked.
        repeats: Whether equal calls of equal layers may be told by the first of them.
        target: What the run is called; the model's class without it.
        config: Sizes and settings of the model, to be kept with the trace.
        sizes: Of the inputs' named axes.

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
    recording = record_model(
        model,
        wanted=wanted,
        operators=operators,
        check=check,
        repeats=repeats,
        target=target,
        config=config,
        sizes=sizes,
    )
    return Watch(recording)


def trace(
    model: nn.Module | Callable[..., nn.Module],
    *args: Any,
    dims: Mapping[str, int] | None = None,
    arg: Mapping[str, Any] | None = None,
    backward: bool = False,
    **kwargs: Any,
) -> Traced:
    """Call a model once and return the trace of the call, every axis named.

    The model is called once, as it is: in its mode, on its device, with gradients where
    they are on. Names come from runs of a weightless copy at other sizes. A class is made
    into a model first, as on the command line: from `arg`, in evaluation mode, on the device
    of its inputs; its axes have the names of the constructor's arguments that move them.

    Args:
        model: The module; or a class, or with `arg` a function, that makes it.
        args: Its arguments.
        dims: Names of the inputs' axes by size, such as ``{"B": 2, "n": 16}``; without
            them names are guessed by position, and marked as guessed. A name whose size
            no input has names the model's own axes of that size, where nothing else does.
        arg: Arguments of the class or function by name, such as ``{"width": 8}``: what
            ``--arg width=8`` is on the command line. A dict in it stays one, or has the
            fields where the parameter takes a configuration object.
        backward: Whether a backward pass follows, from the output's ``.loss``, or from the sum
            of its floating-point outputs that require grad; a note says which. Gradients are
            switched on for it, and every ``grad`` is afterwards what it was. Hooks on
            gradients are called.
        kwargs: Its keyword arguments.

    Raises:
        ShapetraceError: For a class or `arg` that make no model, or wrong `dims`; with
            `backward` if there is nothing that it could begin from, or an argument is itself
            the result of a computation with gradients.
        Exception: What the model raises, with the explanation as a note.

    Example:
        >>> import torch, shapetrace
        >>> model = torch.nn.Linear(4, 3)
        >>> traced = shapetrace.trace(model, torch.ones(2, 5, 4), dims={"B": 2, "n": 5})
        >>> "240 FLOP" in str(traced)  # what print(traced) shows
        True
        >>> arg = {"in_features": 4, "out_features": 3}
        >>> built = shapetrace.trace(torch.nn.Linear, torch.ones(2, 4), arg=arg)
        >>> [dim.name for dim in built.tensors[-1].dims]
        ['B', 'out_features']
    """
    inputs, target = CallInputs(args, kwargs), None
    if arg is None and not isinstance(model, type):
        module = cast("nn.Module", model)  # anything else is refused
        subject = subject_of(module, inputs, dims)
    else:
        target = made_from(model, {} if arg is None else arg)
        module, subject = _built(target, inputs, dims)
    probing, wanted = probed(subject)
    watch = record(
        module,
        wanted=wanted or None,
        target="" if target is None else target.name,
        config=None if target is None else target.config(),
        sizes={**subject.dims, **subject.given},
    )
    watch.probing = probing
    with BackwardPass(module, inputs) if backward else nullcontext() as back:
        with watch:
            if back is None:
                module(*args, **kwargs)
            else:
                back.begin(module(*args, **kwargs))
                back.run()
        watch.note = "" if back is None else back.note
    return watch.trace


def _built(
    target: Target, inputs: CallInputs, dims: Mapping[str, int] | None
) -> tuple[nn.Module, Subject]:
    """A model in evaluation mode where its inputs are, and how to make it at other sizes."""
    check_dims(dims)
    devices = {str(tensor.device) for _, tensor in inputs.tensors()}
    model = target.build(device=devices.pop() if len(devices) == 1 else "", seed=0)
    set_training(model, mode=False)
    return model, target.subject(inputs, dims, packed=is_packed(model))
