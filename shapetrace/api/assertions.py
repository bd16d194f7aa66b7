"""Assert on the shapes of a trace, by the names that the trace gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shapetrace.check.agreement import same
from shapetrace.dims import Binding, Named, align, fit, parse_dims
from shapetrace.errors import ShapetraceError, nearest
from shapetrace.records.folds import expand

if TYPE_CHECKING:
    from torch import nn

    from shapetrace.records.trace import TensorRecord, Trace
    from shapetrace.report.traced import Traced

_ASKED = -1


class Shapes:
    """Traces a model and asserts on what it computes; names keep their sizes in between.

    Example:
        In a test the fixture ``shapetrace`` is one of these.

        >>> import torch
        >>> from shapetrace.model import ModelConfig, build
        >>> model = build(ModelConfig.from_preset("tiny-decoder"))
        >>> ids = torch.zeros(2, 16, dtype=torch.int64)
        >>> def test_queries(shapetrace):
        ...     shapetrace.trace(model, ids, dims={"B": 2, "n": 16})
        ...     shapetrace.assert_shapes("blocks.0.attention.q", "B h n d_k")
        >>> test_queries(Shapes())
    """

    def __init__(self) -> None:
        self._trace: Trace | None = None
        self._sizes: dict[str, Binding] = {}

    def trace(
        self, model: nn.Module, *args: Any, dims: Mapping[str, int] | None = None, **kwargs: Any
    ) -> Traced:
        """Call a model once and keep the trace; as `shapetrace.trace`.

        Args:
            model: The module.
            args: Its arguments.
            dims: Names of the inputs' axes by size.
            kwargs: Its keyword arguments.
        """
        from shapetrace.api.recording import trace  # noqa: PLC0415 - needs torch

        traced = trace(model, *args, dims=dims, **kwargs)
        self.use(traced)
        return traced

    def use(self, trace: Trace) -> None:
        """Assert on a trace that is there already."""
        self._trace = expand(trace)
        self._sizes = {name: Binding(name, size, _ASKED) for name, size in trace.sizes}

    def assert_shapes(self, value: str, dims: str) -> None:
        """Require the shape of a value, in every call of it.

        Args:
            value: The path of a module and the variable, ``blocks.0.attention.scores``; of
                a module alone, what it returns.
            dims: As in a jaxtyping annotation: ``B h n n``. The input's names have their
                sizes; any other name takes the size that it meets first, here and in later
                calls.

        Raises:
            AssertionError: There is no such value, or it has another shape.
            ShapetraceError: Nothing has been traced, or `dims` cannot be read.
        """
        __tracebackhide__ = True
        if self._trace is None:
            raise ShapetraceError("nothing has been traced yet; call shapetrace.trace(model, ...)")
        for record in _records(self._trace, value):
            problem = self._problem(record, value, dims)
            if problem:
                raise AssertionError(problem)

    def _problem(self, record: TensorRecord, value: str, dims: str) -> str:
        axes = parse_dims(dims)
        sizes, conflicts = fit(axes, record.shape, self._sizes, _ASKED)
        if conflicts:
            first = conflicts[0]
            where = "" if first.axis is None else f"axis `{first.written}` is {first.observed}"
            what = where or f"{first.observed} axes came"
            return f'{value} is {_named(record)}, not "{dims}": {what}, not {first.expected}'
        self._sizes = dict(sizes)
        given = {name for name, _ in self._trace.sizes} if self._trace is not None else set()
        for place, axis, _ in align(axes, record.shape) or ():
            dim = record.dims[place] if record.dims is not None else None
            if dim is None or not isinstance(axis, Named) or axis.name not in given:
                continue
            if dim.evidence in ("probe", "input") and not same(dim.name, axis.name):
                return (
                    f'{value} is {_named(record)}, not "{dims}": axis `{axis.name}` is '
                    f"`{dim.name}`, equal only by today's numbers"
                )
        return ""


def _named(record: TensorRecord) -> str:
    names = " ".join(dim.name for dim in record.dims) if record.dims is not None else ""
    return f'"{names}" {list(record.shape)}' if names else f"{list(record.shape)}"


def _records(trace: Trace, value: str) -> list[TensorRecord]:
    """Every record of a value.

    Raises:
        AssertionError: There is none; with the nearest names.
    """
    known: dict[str, list[TensorRecord]] = {}
    for record in trace.tensors:
        site, path = trace.sites[record.site], trace.scopes[record.scope].path
        name = f"{site.name}{record.element}"
        own = ".".join(part for part in path.split(".") if not part.endswith("()"))
        for prefix in dict.fromkeys((path, own)):
            known.setdefault(f"{prefix}.{name}".lstrip("."), []).append(record)
            if site.kind == "return" and prefix == path and not record.element:
                known.setdefault(prefix, []).append(record)
    if value not in known:
        close = nearest(value, list(known)) or nearest(value.rpartition(".")[2], list(known))
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise AssertionError(f"the trace has no {value}{hint}")
    return known[value]
