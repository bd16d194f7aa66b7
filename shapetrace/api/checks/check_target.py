"""Check a model's annotations: run it at several sizes and gather what does not hold."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

from shapetrace.api.checks.tally import Checked, Tally
from shapetrace.api.tracing.resized_inputs import distinct, remade
from shapetrace.api.tracing.trace_target import Request, read_aliases, read_inputs
from shapetrace.check import check
from shapetrace.check.enforcement import unenforced
from shapetrace.check.findings import by_accident, from_mismatches, from_unenforced
from shapetrace.check.rules import chosen
from shapetrace.errors import ShapetraceError
from shapetrace.installed import installed_package

if TYPE_CHECKING:
    from torch import nn

    from shapetrace.capture.declared.judge_values import Judged
    from shapetrace.capture.recording import Recording
    from shapetrace.capture.source.discover import Wanted
    from shapetrace.capture.target.inputs import CallInputs
    from shapetrace.capture.target.subject import Subject
    from shapetrace.capture.target.target import Target
    from shapetrace.dims import Dim
    from shapetrace.naming.name_trace import Probing
    from shapetrace.records.trace import Trace

Progress = Callable[[str], None]


def check_target(
    request: Request, codes: frozenset[str] | None = None, progress: Progress = lambda _: None
) -> Checked:
    """Make a model, run it at several sizes, and gather what does not hold.

    Args:
        request: What to run; inputs from specs can be made at other sizes.
        codes: The rules that are on; those on by default when None.
        progress: Told what is going on.

    Raises:
        ShapetraceError: For a target, inputs or names that cannot be, before anything runs.
    """
    if not request.inputs and request.inputs_file is None:
        raise ShapetraceError(
            f"no input is given for {request.target}; give --input, such as --input x:float32[B=2,n=16]"
        )
    from shapetrace.api.transformer.building import check_device  # noqa: PLC0415 - needs torch
    from shapetrace.capture.source.live_functions import searched_once  # noqa: PLC0415
    from shapetrace.capture.target.inputs import check_signature  # noqa: PLC0415
    from shapetrace.capture.target.target import resolve  # noqa: PLC0415
    from shapetrace.capture.values.members import set_training  # noqa: PLC0415

    check_device(request.device)
    read_aliases(request.aliases)
    target = resolve(request.target, request.arguments, request.hf_config)
    inputs = read_inputs(request)
    progress(f"making {target.name}")
    model = target.build(device=request.device, seed=request.seed)
    set_training(model, mode=request.train)
    check_signature(model, inputs)
    run = _Checking(request, target, model, inputs, progress)
    with searched_once():
        error = run.all()
    found = run.tally.result(target.name, codes or chosen(), _owner_of(request.target))
    return replace(found, error=error)


class _Checking:
    """One model's runs."""

    def __init__(
        self,
        request: Request,
        target: Target,
        model: nn.Module,
        inputs: CallInputs,
        progress: Progress,
    ) -> None:
        self.request, self.target, self.model, self.inputs = request, target, model, inputs
        self.aliases, self.progress = read_aliases(request.aliases), progress
        self.tally = Tally()
        self.config: dict[str, int] = {}
        self.owned: Mapping[str, Mapping[str, int]] = {}

    def all(self) -> BaseException | None:
        """The run as asked, at other sizes of the inputs, and of the model; how it failed."""
        from shapetrace.api.tracing.probe_names import probed  # noqa: PLC0415 - needs torch
        from shapetrace.capture.declared.bypass import unenforced  # noqa: PLC0415
        from shapetrace.capture.probing.resized_models import owned_sizes  # noqa: PLC0415

        self.owned = owned_sizes(self.model)
        subject = self.target.subject(self.inputs)
        with unenforced():
            probing, wanted = probed(
                subject, lambda name: self.progress(f"naming: {name} at another size")
            )
        self.tally.notes += probing.notes
        self.config = {
            self.aliases.get(name, name): size
            for name, size in subject.integers.items()
            if name in probing.moved
        }
        error = self._as_asked(probing, wanted or None)
        if error is None:
            self._other_inputs(wanted or None)
            if probing.base is not None:
                self._other_models(subject, probing, wanted)
        return error

    def _as_asked(self, probing: Probing, wanted: Wanted | None) -> BaseException | None:
        sizes = self._sizes()
        self.progress("running one pass")
        recording, error, whole = self._recorded(self.inputs, wanted, sizes)
        trace = recording.trace
        found = check(trace, probed=_probed_dims(trace, probing, self.aliases), owned=self.owned)
        lax = from_unenforced(unenforced(recording.signatures()))
        self.tally.add(trace, tuple(sizes.items()), [*from_mismatches(trace, found), *lax], whole)
        return error

    def _sizes(self) -> dict[str, int]:
        return dict(self.inputs.specs.sizes) if self.inputs.specs is not None else {}

    def _other_inputs(self, wanted: Wanted | None) -> None:
        for change, inputs in self._resized():
            told = ", ".join(f"{name}={size}" for name, size in change.items())
            self.progress(f"running with {told}")
            recording, error, whole = self._recorded(inputs, wanted, {**self._sizes(), **change})
            if error is not None:
                why = str(error).strip().partition("\n")[0]
                self.tally.notes.append(f"not run with {told}: {type(error).__name__}: {why}")
                continue
            sizes, trace = tuple(change.items()), recording.trace
            found = from_mismatches(trace, check(trace, owned=self.owned), sizes)
            self.tally.add(trace, sizes, found, whole)

    def _resized(self) -> Iterator[tuple[dict[str, int], CallInputs]]:
        """The inputs at other sizes, with what was changed."""
        from shapetrace.capture.target.inputs import from_specs  # noqa: PLC0415 - needs torch

        specs = self.inputs.specs
        if specs is None:
            others = [*remade(self.request)]
            if not others:
                self.tally.notes.append(
                    "inputs from a file were run at their own sizes alone; whole numbers with "
                    "defaults, as parameters of the function that makes them, would be varied"
                )
            yield from others
            return
        fixed = frozenset(self.target.integers()) if self.target.rebuilds else frozenset()
        free = {name: size for name, size in self._sizes().items() if name not in fixed}
        for change in _other_sizes(free):
            yield (
                change,
                from_specs(
                    specs.resized(change), device=self.request.device, seed=self.request.seed
                ),
            )

    def _other_models(self, subject: Subject, probing: Probing, wanted: Wanted) -> None:
        from shapetrace.api.tracing.probe_names import no_complaints, run_tamely  # noqa: PLC0415
        from shapetrace.capture.declared import bypass  # noqa: PLC0415 - these need torch
        from shapetrace.capture.probing.resized_models import elsewhere  # noqa: PLC0415

        self.progress("running with the model at other sizes")
        with redirect_stdout(io.StringIO()), no_complaints(), bypass.unenforced():
            runs = list(elsewhere(subject, probing, wanted, run_tamely))
        for name, size, trace in runs:
            sizes = ((self.aliases.get(name, name), size),)
            found = by_accident(from_mismatches(trace, check(trace, pinned=()), sizes))
            self.tally.add(trace, sizes, found)

    def _recorded(
        self, inputs: CallInputs, wanted: Wanted | None, sizes: Mapping[str, int]
    ) -> tuple[Recording, BaseException | None, Judged]:
        """One run: what was recorded, how it failed, and the verdict on whole values."""
        import torch  # noqa: PLC0415

        from shapetrace.capture.declared.bypass import unenforced  # noqa: PLC0415
        from shapetrace.capture.declared.judge_values import judged, watcher_of  # noqa: PLC0415
        from shapetrace.capture.recording import record  # noqa: PLC0415
        from shapetrace.capture.source.discover import reachable  # noqa: PLC0415

        wanted = reachable(self.model) if wanted is None else wanted
        watcher = watcher_of(wanted)
        watcher.look_at_modules(self.model)
        recording = record(
            self.model,
            wanted=wanted,
            operators=False,
            target=self.target.name,
            config=self.config,
            sizes=sizes,
        )
        error: BaseException | None = None
        try:
            grad = torch.set_grad_enabled(self.request.train)
            with grad, unenforced(), watcher.watching(), recording:
                self.model(*inputs.args, **inputs.kwargs)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - it is reported
            error = raised
        return recording, error, judged(watcher)


def _other_sizes(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """All a little larger and no two alike, in either order; then each alone doubled.

    The greatest becomes the least once: an axis may be the lesser of two.
    """
    if not sizes:
        return
    larger = distinct(sizes)
    yield larger
    if len(sizes) > 1:
        ranked = sorted(larger, key=lambda name: larger[name])
        turned = zip(ranked, sorted(larger.values(), reverse=True), strict=True)
        yield dict(turned)
        yield from ({name: 2 * size} for name, size in sizes.items())


def _probed_dims(
    trace: Trace, probing: Probing, aliases: Mapping[str, str]
) -> dict[int, tuple[Dim, ...]]:
    """What the probes alone say of each tensor."""
    from shapetrace.naming.name_trace import named  # noqa: PLC0415

    bare = replace(trace, tensors=tuple(replace(record, declared=None) for record in trace.tensors))
    tensors = named(bare, probing, aliases).tensors
    return {index: record.dims for index, record in enumerate(tensors) if record.dims is not None}


def _owner_of(target: str) -> Callable[[str], bool]:
    """Whether a file is the user's: not installed, or of the target's own package."""
    from shapetrace.api.annotating.observe import origin_file  # noqa: PLC0415 - needs torch

    origin = origin_file(target)
    package = installed_package(origin)
    return lambda file: not installed_package(file) or installed_package(file) == package
