"""One model, looked at in every way: untraced, traced, traced without repeats, counted."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from shapetrace.api.preparing.probe_names import probed
from shapetrace.capture import record
from shapetrace.capture.target.inputs import CallInputs, from_specs
from shapetrace.capture.target.instances import subject_of
from shapetrace.capture.target.target import resolve
from shapetrace.cost import summarise
from shapetrace.dims import Dim
from shapetrace.dims.specs import parse_specs
from shapetrace.naming.name_trace import named
from shapetrace.records.trace import TensorRecord, Trace
from tests.capture.test_untouched import codes, state
from tests.covered.packages import needs

Facts = dict[tuple[str, str], str]
"""By function and variable, the dims that the model's definition gives it."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A model in a tiny configuration.

    Attributes:
        name: What the tables call it.
        target: As for the command line; or a function that makes the module.
        inputs: Input specs; or a function that makes the arguments.
        settings: Of the configuration or the constructor.
        package: What has to be installed.
        facts: What some of its tensors are.
        flops: Its FLOPs where FlopCounterMode can't tell them; None for FlopCounterMode's.
        own: Part of the path of the model's own file, whose every dim must have evidence.
        dims: Names of input axes, for a function that makes the module.
    """

    name: str
    target: str | Callable[[], nn.Module]
    inputs: tuple[str, ...] | Callable[[], tuple[Any, ...]]
    settings: tuple[str, ...] = ()
    package: str = "transformers"
    facts: Facts = dataclasses.field(default_factory=dict)
    flops: int | None = None
    own: str = ""
    dims: dict[str, int] | None = None
    hidden: frozenset[str] = frozenset()
    """Types of modules that torch runs without calling them, or whose calls have no source."""


@dataclasses.dataclass(frozen=True)
class Study:
    """What was seen of a case."""

    case: Case
    expected: list[torch.Tensor]
    actual: list[torch.Tensor]
    left: list[str]
    trace: Trace
    plain: Trace
    calls: Counter[str]
    counted: int
    paths: frozenset[str]

    @property
    def records(self) -> list[TensorRecord]:
        """The records outside torch's own code; of a bare module of torch, all there are."""
        own = [r for r in self.trace.tensors if not self.trace.sites[r.site].internal]
        return own or list(self.trace.tensors)

    @property
    def dims(self) -> list[tuple[TensorRecord, Dim]]:
        """Every dim of every such record."""
        return [(r, dim) for r in self.records for dim in r.dims or ()]

    @property
    def flops(self) -> int:
        return summarise(self.trace).flops

    def share(self, *kinds: str) -> float:
        """The share of dims whose name rests on evidence of some kinds."""
        found = Counter(kind_of(dim) for _, dim in self.dims)
        return sum(found[kind] for kind in kinds) / max(1, sum(found.values()))


def kind_of(dim: Dim) -> str:
    """What a dim's name rests on: a number that no size moves is known to be a number."""
    if dim.evidence == "literal":
        return "number" if dim.detail.startswith("moving") else "unknown"
    return dim.evidence


EVIDENCE = ("probe", "declared", "input", "number")


@functools.cache
def _studies() -> dict[str, Study]:
    return {}


def study(case: Case) -> Study:
    """Look at a case, once per process."""
    known = _studies()
    if case.name not in known:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the packages' own
            known[case.name] = _study(case)
    return known[case.name]


def _study(case: Case) -> Study:
    needs(case.package)
    build, inputs, subject = made(case)
    model, twin = build(), build()
    with torch.no_grad():
        torch.manual_seed(0)
        with _counted(twin) as calls:
            expected = leaves(twin(*inputs.args, **inputs.kwargs))
        after_plain = state()
    probing, wanted = probed(subject)
    with torch.no_grad():
        code = codes()
        torch.manual_seed(0)
        with record(model, wanted=wanted) as recording:
            actual = leaves(model(*inputs.args, **inputs.kwargs))
        left = [f"{f.__qualname__} has other code" for f, was in code if f.__code__ is not was]
        left += [] if state() == after_plain else ["global state"]
        left += _changed(model, twin)
        with record(model, wanted=wanted, repeats=False) as again:
            torch.manual_seed(0)
            model(*inputs.args, **inputs.kwargs)
        counted = case.flops if case.flops is not None else _flops(build(), inputs)
    trace, plain = named(recording.trace, probing), again.trace
    paths = frozenset(path for path, _ in twin.named_modules(remove_duplicate=False))
    return Study(case, expected, actual, left, trace, plain, calls, counted, paths)


def made(case: Case) -> tuple[Callable[[], nn.Module], CallInputs, Any]:
    if not isinstance(case.target, str):
        make = case.target
        assert callable(case.inputs)
        inputs = CallInputs(case.inputs())

        def build() -> nn.Module:
            torch.manual_seed(1)
            return make().eval()

        return build, inputs, subject_of(build(), inputs, case.dims)
    hf = case.package == "transformers"
    target = resolve(case.target, () if hf else case.settings, case.settings if hf else ())
    inputs = from_specs(parse_specs(case.inputs))
    return lambda: target.build(seed=1).eval(), inputs, target.subject(inputs)


def _changed(model: nn.Module, twin: nn.Module) -> Iterator[str]:
    for (path, one), other in zip(model.named_modules(), twin.modules(), strict=True):
        if one.training != other.training:
            yield f"{path} has another mode"
        hooks = {name for name, value in vars(one).items() if name.endswith("hooks") and value}
        if hooks != {n for n, value in vars(other).items() if n.endswith("hooks") and value}:
            yield f"{path} has other hooks: {hooks}"
    if any(parameter.grad is not None for parameter in model.parameters()):
        yield "a gradient"


@contextlib.contextmanager
def _counted(model: nn.Module) -> Iterator[Counter[str]]:
    """How often modules of each type are called, by hooks."""
    calls: Counter[str] = Counter()

    def count(module: nn.Module, _: Any) -> None:
        calls[type(module).__qualname__] += 1

    seen = [
        module
        for module in model.modules()
        if not isinstance(module, torch.jit.ScriptModule)
        and type(module).forward is not nn.Sequential.forward  # torch's own, no scope
    ]
    handles = [m.register_forward_pre_hook(count) for m in seen]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _flops(model: nn.Module, inputs: CallInputs) -> int:
    """FlopCounterMode's count, with attention written out so that it sees it."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel([SDPBackend.MATH]), FlopCounterMode(display=False) as counter:
            model(*inputs.args, **inputs.kwargs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return counter.get_total_flops()


def leaves(value: Any) -> list[torch.Tensor]:
    """The tensors in a model's output, whatever holds them."""
    if isinstance(value, torch.Tensor):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return leaves([getattr(value, field.name) for field in dataclasses.fields(value)])
    if isinstance(value, dict):
        return leaves(list(value.values()))
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def check(case: Case) -> Study:
    """All that must hold of every case."""
    seen = study(case)
    assert len(seen.actual) == len(seen.expected) > 0
    for one, other in zip(seen.actual, seen.expected, strict=True):
        assert same(one, other), "the traced run gives other outputs"
    assert seen.left == []
    bare = dataclasses.replace(seen.plain, wall_time=0.0)
    fast = [(r.site, r.scope, r.element, r.shape, r.dtype) for r in seen.trace.tensors]
    assert fast == [(r.site, r.scope, r.element, r.shape, r.dtype) for r in bare.tensors]
    assert [op.name for op in seen.trace.ops] == [op.name for op in bare.ops]
    counts = called(seen)
    assert all(counts[kind] == n for kind, n in seen.calls.items() if kind in counts)
    assert not missing(seen), f"calls that were not seen: {missing(seen)}"
    for (function, name), dims in case.facts.items():
        assert dims in dims_of(seen.trace, function, name), (function, name)
    assert seen.flops == seen.counted
    return seen


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal to the bit, NaNs and layouts included."""
    if one.layout is not torch.strided or one.is_quantized or one.is_nested:
        one, other = _plain(one), _plain(other)
    return one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_nested:
        return torch.nested.to_padded_tensor(tensor, 0.0)
    return tensor.dequantize() if tensor.is_quantized else tensor.to_dense()


def called(seen: Study) -> dict[str, int]:
    """How often modules of each type were called, by the trace."""
    scopes = [s for s in seen.trace.scopes if s.kind == "module"]
    return dict(Counter(scope.type_name for scope in scopes))


def missing(seen: Study) -> set[str]:
    """Types of modules that were called and have no scope."""
    found = {k for k in seen.calls if k not in called(seen)}
    return found - seen.case.hidden


def dims_of(trace: Trace, function: str, name: str) -> set[str]:
    """What a variable's dims are, in every call of a function."""
    found = set()
    for record_ in trace.tensors:
        site = trace.sites[record_.site]
        if site.function == function and site.name == name and record_.dims is not None:
            found.add(" ".join(dim.name for dim in record_.dims))
    return found
