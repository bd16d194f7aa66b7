"""The process that proves annotations: new source, run with every annotation checked.

``python -m shapetrace.capture.proof.child FOLDER`` reads a `ProofJob` there and leaves a `Verdict`.
The annotated files are imported in place of the old ones; each call of a function with
annotations has a jaxtyping context of its own, and beartype gives the verdict on each value.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import io
import linecache
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from jaxtyping import jaxtyped

from shapetrace.capture.declared.refused import fits
from shapetrace.capture.proof.checked_source import CHECK_LOCAL, CHECKED, checked_tree
from shapetrace.capture.proof.messages import Failed, Fingerprint, ProofCase, ProofJob, Verdict
from shapetrace.capture.random_state import same_random_state
from shapetrace.capture.target.calling import call_model
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.target import resolve
from shapetrace.capture.values import members
from shapetrace.capture.values.tensors_in import elements

_MISSING = object()


class Judge:
    """Checks values and notes what fails, each place once."""

    def __init__(self, names: Mapping[tuple[str, int], frozenset[str]]) -> None:
        """Take the places whose annotations are to be proven: by file and function."""
        self.names = names
        self.failed: dict[tuple[str, int, str], str] = {}
        self.seen: set[tuple[str, int, str]] = set()
        self.checks = 0

    def unseen(self) -> list[Failed]:
        """Places that no call reached: nothing proves them."""
        wanted = {(*place, name) for place, names in self.names.items() for name in names}
        return [Failed(*place, "was not reached again") for place in sorted(wanted - self.seen)]

    def judge(self, file: str, function: int, name: str, value: Any, hint: Any) -> None:
        """Check one value, as the annotated function's caller would."""
        self.checks += 1
        self.seen.add((file, function, name))
        try:
            holds = fits(value, hint)
            problem = "" if holds else f"got {described(value)}"
        except Exception as error:  # noqa: BLE001 - jaxtyping's or beartype's own complaint
            problem = f"{type(error).__name__}: {str(error).partition('. ')[0]}"
        if problem and name in self.names.get((file, function), ()):
            self.failed.setdefault((file, function, name), problem)

    def decorator(self, file: str, number: int) -> Callable[[Any], Any]:
        """What stands at a function that is to check itself."""

        def decorate(function: Any) -> Any:
            if not isinstance(function, FunctionType):
                return function
            return _checking(function, functools.partial(self.judge, file, number))

        return decorate


def _checking(function: FunctionType, judge: Callable[[str, Any, Any], None]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    suspends = inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function)
    hints: dict[str, Any] = {}

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not hints:
            hints.update(_hints(function))
        with jaxtyped("context"):
            _judge_arguments(signature, args, kwargs, hints, judge)
            result = function(*args, **kwargs)
            if "return" in hints and not suspends:
                judge("return", result, hints["return"])
            return result

    return checked


def _hints(function: FunctionType) -> dict[str, Any]:
    """A function's annotations, those in quotes read; one that can't be read fails by itself."""
    found: dict[str, Any] = {"": None}
    for name, annotation in function.__annotations__.items():
        value = annotation
        with contextlib.suppress(Exception):
            while isinstance(value, str):
                value = eval(value, function.__globals__)  # noqa: S307 - the file's own annotation
        found[name] = value
    return found


def _judge_arguments(
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    hints: Mapping[str, Any],
    judge: Callable[[str, Any, Any], None],
) -> None:
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call itself will raise
    for name, parameter in signature.parameters.items():
        value, hint = bound.get(name, _MISSING), hints.get(name, _MISSING)
        if value is _MISSING or hint is _MISSING:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            values = list(value)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values = list(value.values())
        else:
            values = [value]
        for one in values:
            judge(name, one, hint)


def described(value: Any) -> str:
    """A value in a word: a tensor by dtype and sizes, anything else by its class."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    inside = [described(tensor) for _, tensor in elements(value)]
    kind = type(value).__name__
    return f"{kind} of {', '.join(inside[:3])}" if inside else kind


class _Finder(MetaPathFinder):
    """Finds the annotated files' modules, and those that no search would find."""

    def __init__(self, job: ProofJob, judge: Judge) -> None:
        self._job = job
        self._judge = judge

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002 - the protocol's
        file = self._job.modules.get(name)
        if file is None:
            return None
        folder = [str(Path(file).parent)] if file.endswith("__init__.py") else None
        loader = _Loader(name, file, self._job, self._judge)
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=folder)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, job: ProofJob, judge: Judge) -> None:
        super().__init__(name, path)
        self._job = job
        self._judge = judge

    def get_code(self, fullname: str) -> CodeType | None:
        source = self._job.sources.get(self.path)
        if source is None:
            return super().get_code(fullname)
        lines = source.decode("utf-8", "replace").splitlines(keepends=True)
        linecache.cache[self.path] = (len(source), None, lines, self.path)
        wanted = {
            number: names for (file, number), names in self._job.locals.items() if file == self.path
        }
        tree = checked_tree(source, wanted)
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, CHECKED, functools.partial(self._judge.decorator, self.path))
        setattr(module, CHECK_LOCAL, functools.partial(self._judge.judge, self.path))
        super().exec_module(module)


def prove(job: ProofJob) -> Verdict:
    """Run a job in this process, which is not to be used for anything else."""
    judge = Judge(job.names)
    sys.path[:] = job.path
    sys.meta_path.insert(0, _Finder(job, judge))
    for name, file in job.modules.items():
        if file in job.sources:
            module = importlib.import_module(name)
            if _is_target(job, file):  # which is looked up by the file's own name
                sys.modules[Path(file).stem] = module
    cases: list[ProofCase] = pickle.loads(job.cases)  # noqa: S301 - our own
    outputs = [one for case in cases for one in _outputs(job, case)]
    failed = [Failed(*place, reason) for place, reason in judge.failed.items()]
    return Verdict((*failed, *judge.unseen()), tuple(outputs), judge.checks)


def _is_target(job: ProofJob, file: str) -> bool:
    where = job.target[0].rpartition(":")[0] if job.target is not None else ""
    return where.endswith(".py") and Path(where).resolve() == Path(file).resolve()


def _outputs(job: ProofJob, case: ProofCase) -> list[Fingerprint]:
    model = members.set_training(_model(job, case), mode=case.training)
    return [fingerprint(model, call) for call in case.calls]


def _model(job: ProofJob, case: ProofCase) -> torch.nn.Module:
    if case.target is None:
        model: torch.nn.Module = pickle.loads(job.model)  # noqa: S301 - our own process wrote it
        return model
    return resolve(*case.target).build(seed=job.seed)


def fingerprint(model: torch.nn.Module, inputs: CallInputs) -> Fingerprint:
    """What a model returns for some inputs: each tensor's place, type, shape and bits."""
    with torch.no_grad(), same_random_state(0):
        result = call_model(model, inputs)
    return tuple((place, described(tensor), _bits(tensor)) for place, tensor in elements(result))


def _bits(tensor: torch.Tensor) -> str:
    buffer = io.BytesIO()
    with contextlib.suppress(Exception):  # a layout without plain bytes is told by its shape
        buffer.write(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def _run(folder: Path) -> None:
    job: ProofJob = pickle.loads((folder / "job").read_bytes())  # noqa: S301 - our parent wrote it
    if job.folder:
        os.chdir(job.folder)
    try:
        verdict = prove(job)
    except Exception as error:  # noqa: BLE001 - the parent explains it
        text = "".join(traceback.format_exception(error))
        verdict = Verdict((), (), 0, f"{type(error).__name__}: {error}", text)
    (folder / "verdict").write_bytes(pickle.dumps(verdict))


def _stand_by() -> None:
    """Serve one wish per line of standard input: a folder with a job, or an import."""
    for line in sys.stdin:
        wish = line.rstrip("\n")
        if wish.startswith("import "):
            importlib.import_module(wish.removeprefix("import "))
        else:
            _run_forked(Path(wish))
        sys.stdout.write("done\n")
        sys.stdout.flush()


def _run_forked(folder: Path) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    with (folder / "stderr").open("wb") as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    try:
        _run(folder)
    except BaseException:  # noqa: BLE001 - this child ends here, whatever it was
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _run(Path(sys.argv[1]))
    else:
        _stand_by()
