"""Have annotations proven: run the annotated files in a process of their own."""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from torch import nn

from shapetrace.capture.proof.child import fingerprint
from shapetrace.capture.proof.messages import Fingerprint, ProofCase, ProofJob, Verdict
from shapetrace.capture.proof.process import FORKS, forked, spawned
from shapetrace.capture.target.target import resolve
from shapetrace.capture.values import members
from shapetrace.errors import ShapetraceError


@dataclass(frozen=True, slots=True)
class Proof:
    """How to run a model elsewhere: by what makes it, or as it is.

    Attributes:
        model: The model.
        cases: Its calls, and those of others like it.
        seed: Of the target's random weights.
    """

    model: nn.Module
    cases: Sequence[ProofCase]
    seed: int = 0

    def of(
        self,
        sources: Mapping[str, bytes],
        names: Mapping[tuple[str, int], frozenset[str]],
        variables: Mapping[tuple[str, int], frozenset[str]],
    ) -> Verdict:
        """Run the annotated files with every annotation checked.

        Args:
            sources: By file, its annotated source.
            names: By file and number of the function, the places to be proven.
            variables: The same, variables alone.

        Raises:
            ShapetraceError: If the model can't be sent to another process, or that fails.
        """
        job = ProofJob(
            sources=sources,
            modules=_modules(sources),
            names=names,
            locals={place: variables.get(place, frozenset()) for place in names},
            cases=_pickled(list(self.cases), "the inputs"),
            path=tuple(sys.path),
            target=self.cases[0].target,
            model=self._model() if self.cases[0].target is None else b"",
            seed=self.seed,
            folder=str(Path.cwd()),
        )
        return _run(job)

    def expected(self) -> tuple[Fingerprint, ...]:
        """What a new model returns in this process, with the source as it is.

        Raises:
            ShapetraceError: If there is no target and the model can't be copied.
        """
        cases: list[ProofCase] = pickle.loads(_pickled(list(self.cases), "the inputs"))  # noqa: S301 - our own
        found = []
        for case in cases:
            if case.target is not None:
                model = resolve(*case.target).build(seed=self.seed)
            else:
                model = pickle.loads(self._model())  # noqa: S301 - our own
            members.set_training(model, mode=case.training)
            found += [fingerprint(model, call) for call in case.calls]
        return tuple(found)

    def _model(self) -> bytes:
        return _pickled(self.model, "the model")


def _run(job: ProofJob) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="shapetrace-") as name:
        folder = Path(name)
        (folder / "job").write_bytes(pickle.dumps(job))
        said = forked(folder) if FORKS else spawned(folder)
        if not (folder / "verdict").exists():
            last = said.strip().rpartition("\n")[2]
            raise ShapetraceError(f"the annotated source could not be run: {last or 'it died'}")
        verdict: Verdict = pickle.loads((folder / "verdict").read_bytes())  # noqa: S301 - our own
        return verdict


def _pickled(value: object, what: str) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise ShapetraceError(
            f"{what} can't be sent to the process that proves annotations "
            f"({type(error).__name__}: {error}); give a target that makes it instead"
        ) from error


def _modules(sources: Mapping[str, bytes]) -> dict[str, str]:
    """The modules of the annotated files, and loaded ones that no search would find."""
    found = {}
    endings = {Path(source).name for source in sources}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(file, str):
            continue
        if file in sources:
            found[name] = file
        elif (Path(file).name in endings or Path(file).is_symlink()) and (
            path := str(Path(file).resolve())
        ) in sources:
            found[name] = path
        elif "." not in name and file.endswith(".py") and PathFinder.find_spec(name) is None:
            found[name] = file
    return found
