"""Check a model's annotations: run it at several sizes and gather what does not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from shapetrace.api.checks.tally import Checked, Tally
from shapetrace.api.preparing.prepare import Prepared, prepare
from shapetrace.api.preparing.probe_names import probed
from shapetrace.api.preparing.request import Request
from shapetrace.api.preparing.source_files import origin_file
from shapetrace.capture.declared import bypass
from shapetrace.capture.declared.judge_values import Judged, judged, watcher_of
from shapetrace.capture.probing.resized_models import elsewhere, owned_sizes
from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.recording import Recording, record
from shapetrace.capture.source.discover import Wanted, reachable
from shapetrace.capture.source.live_functions import searched_once
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.subject import Subject
from shapetrace.capture.target.unheard import unheard
from shapetrace.check import check
from shapetrace.check.enforcement import unenforced
from shapetrace.check.findings import by_accident, from_mismatches, from_unenforced
from shapetrace.check.rules import chosen
from shapetrace.dims import Dim
from shapetrace.installed import installed_package
from shapetrace.naming.name_trace import Probing, named
from shapetrace.records.trace import Trace


def check_target(
    request: Request,
    codes: frozenset[str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Make a model, run it at several sizes, and gather what does not hold.

    Args:
        request: What to run; inputs from specs can be made at other sizes.
        codes: The rules that are on; those on by default when None.
        progress: Told what is going on.

    Raises:
        ShapetraceError: For a target, inputs or names that cannot be, before anything runs.
    """
    request.require_inputs()
    run = _Checking(prepare(request, progress), progress)
    with searched_once(), same_random_state(request.seed):
        error = run.all()
    found = run.tally.result(run.prepared.target.name, codes or chosen(), _owner_of(request.target))
    return replace(found, error=error)


class _Checking:
    """One model's runs."""

    def __init__(self, prepared: Prepared, progress: Callable[[str], None]) -> None:
        self.prepared, self.progress = prepared, progress
        self.aliases = prepared.aliases
        self.tally = Tally()
        self.config: dict[str, int] = {}
        self.owned: Mapping[str, Mapping[str, int]] = owned_sizes(prepared.model)

    def all(self) -> BaseException | None:
        """The run as asked, at other sizes of the inputs, and of the model; how it failed."""
        subject = self.prepared.subject()
        with bypass.without_enforcement():
            probing, wanted = probed(subject, self.progress)
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
        sizes = self.prepared.sizes()
        self.progress("running one pass")
        recording, error, whole = self._recorded(self.prepared.inputs, wanted, sizes)
        trace = recording.trace
        found = check(trace, probed=_probed_dims(trace, probing, self.aliases), owned=self.owned)
        lax = from_unenforced(unenforced(recording.signatures()))
        self.tally.add(trace, tuple(sizes.items()), [*from_mismatches(trace, found), *lax], whole)
        return error

    def _other_inputs(self, wanted: Wanted | None) -> None:
        ran = False
        for change, inputs in self.prepared.at_other_sizes():
            ran = True
            told = ", ".join(f"{name}={size}" for name, size in change.items())
            self.progress(f"running with {told}")
            known = {**self.prepared.sizes(), **change}
            recording, error, whole = self._recorded(inputs, wanted, known)
            if error is not None:
                why = str(error).strip().partition("\n")[0]
                self.tally.notes.append(f"not run with {told}: {type(error).__name__}: {why}")
                continue
            sizes, trace = tuple(change.items()), recording.trace
            found = from_mismatches(trace, check(trace, owned=self.owned), sizes)
            self.tally.add(trace, sizes, found, whole)
        if not ran and self.prepared.inputs.specs is None:
            self.tally.notes.append(
                "inputs from a file were run at their own sizes alone; whole numbers with "
                "defaults, as parameters of the function that makes them, would be varied"
            )

    def _other_models(self, subject: Subject, probing: Probing, wanted: Wanted) -> None:
        self.progress("running with the model at other sizes")
        with unheard(), bypass.without_enforcement():
            runs = list(elsewhere(subject, probing, wanted))
        for name, size, trace in runs:
            sizes = ((self.aliases.get(name, name), size),)
            found = by_accident(from_mismatches(trace, check(trace, pinned=()), sizes))
            self.tally.add(trace, sizes, found)

    def _recorded(
        self, inputs: CallInputs, wanted: Wanted | None, sizes: Mapping[str, int]
    ) -> tuple[Recording, BaseException | None, Judged]:
        """One run: what was recorded, how it failed, and the verdict on whole values."""
        model = self.prepared.model
        wanted = reachable(model) if wanted is None else wanted
        watcher = watcher_of(wanted)
        watcher.look_at_modules(model)
        recording = record(
            model,
            wanted=wanted,
            operators=False,
            target=self.prepared.target.name,
            config=self.config,
            sizes=sizes,
        )
        error: BaseException | None = None
        try:
            grad = torch.set_grad_enabled(self.prepared.request.train)
            with grad, bypass.without_enforcement(), watcher.watching(), recording:
                model(*inputs.args, **inputs.kwargs)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - it is reported
            error = raised
        return recording, error, judged(watcher)


def _probed_dims(
    trace: Trace, probing: Probing, aliases: Mapping[str, str]
) -> dict[int, tuple[Dim, ...]]:
    """What the probes alone say of each tensor."""
    bare = replace(trace, tensors=tuple(replace(record, declared=None) for record in trace.tensors))
    tensors = named(bare, probing, aliases).tensors
    return {index: record.dims for index, record in enumerate(tensors) if record.dims is not None}


def _owner_of(target: str) -> Callable[[str], bool]:
    """Whether a file is the user's: not installed, or of the target's own package."""
    origin = origin_file(target)
    package = installed_package(origin)
    return lambda file: not installed_package(file) or installed_package(file) == package
