"""Annotate a model's source: run it at several sizes, infer, rewrite, prove.

Nothing is written here; the caller gets the new source of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from shapetrace.annotation.inference.infer import Wishes, infer
from shapetrace.api.annotating.annotated import Annotated
from shapetrace.api.annotating.observe import Runs, of_instance, of_target, run_all
from shapetrace.api.annotating.prove import proven
from shapetrace.api.preparing.prepare import prepare
from shapetrace.api.preparing.request import Request
from shapetrace.api.preparing.source_files import instance_file, origin_file, own_sources
from shapetrace.capture.proof.proof import Proof
from shapetrace.capture.target.given import check_dims, check_module
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.instances import as_module, evaluating
from shapetrace.errors import ShapetraceError


def annotate_target(
    request: Request,
    wishes: Wishes | None = None,
    *,
    guard: Callable[[str], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Annotated:
    """Annotate the source of what a target names.

    Args:
        request: What to run; specs can be made at other sizes, inputs from a file can't.
        wishes: What to annotate and how.
        guard: Called with each file that would change, before the proof; it may refuse.
        progress: Told what is going on.

    Raises:
        ShapetraceError: If the target can't be made or run, its source can't be read, no
            tensor is seen, or there is nothing to annotate.
    """
    request.require_inputs()
    prepared = prepare(request, progress)
    origin = origin_file(request.target)
    runs = run_all(of_target(prepared), origin, prepared.aliases, progress, prepared)
    place = own_sources(runs.traces, origin)
    proof = Proof(prepared.model, runs.cases, request.seed)
    return _finish(runs, proof, place, wishes or Wishes(), guard=guard, progress=progress)


def annotate(
    model: nn.Module | Callable[..., Any],
    *args: Any,
    dims: Mapping[str, int] | None = None,
    wishes: Wishes | None = None,
    **kwargs: Any,
) -> Annotated:
    """Annotate the source of a model, or of a function, that exists, from a call of it.

    It is called at several sizes of the inputs' axes, in evaluation mode and without
    gradients; the annotated source is proven in a process of its own. Nothing is written
    before `Annotated.write`.

    Args:
        model: A module, or a plain function of tensors; importable from a module.
        args: Its arguments.
        dims: Names of the inputs' axes by size, such as ``{"B": 2, "n": 16}``; without
            them names are guessed by position.
        wishes: What to annotate and how: ``Wishes(locals="first", replace=True)``.
        kwargs: Its keyword arguments.

    Raises:
        ShapetraceError: If it does not run, can't be sent to another process, has no source,
            or there is nothing to annotate.

    Example:
        >>> import pathlib, sys, tempfile, torch, shapetrace
        >>> folder = tempfile.mkdtemp()
        >>> lines = (
        ...     "import torch",
        ...     "class Doubled(torch.nn.Module):",
        ...     "    def forward(self, x):",
        ...     "        return torch.cat([x, x], 1)",
        ... )
        >>> file = pathlib.Path(folder, "doubled_example.py")
        >>> with file.open("w") as opened:
        ...     print(*lines, sep=chr(10), file=opened)
        >>> sys.path.insert(0, folder)
        >>> from doubled_example import Doubled
        >>> result = shapetrace.annotate(Doubled(), torch.ones(2, 5), dims={"B": 2, "n": 5})
        >>> '-> Float[torch.Tensor, "B 2*n"]' in result.diff()
        True
        >>> result.write() == [file]
        True
    """
    if isinstance(model, type):
        check_module(model)
    check_dims(dims)
    origin = instance_file(model)
    module = as_module(model)
    with evaluating(module):
        running = of_instance(module, CallInputs(args, kwargs), dims)
        runs = run_all(running, origin, {}, lambda _: None)
        place = own_sources(runs.traces, origin)
        return _finish(runs, Proof(module, runs.cases), place, wishes or Wishes())


def _finish(
    runs: Runs,
    proof: Proof,
    place: tuple[Path, Iterable[str]],
    wishes: Wishes,
    *,
    guard: Callable[[str], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Annotated:
    """From runs to proven source.

    Raises:
        ShapetraceError: When nothing is to be annotated, or the new source does not run.
    """
    root, found = place
    sources = {file: _read(file) for file in found}
    inferred = infer(
        runs.traces, runs.structures, sources, wishes, ran=runs.code.spans(), owned=runs.owned
    )
    if not inferred.tensors:
        raise ShapetraceError(
            "nothing to annotate: no function of "
            f"{root} was seen with a tensor{_only(wishes)}; see --only and the target"
        )
    progress("proving the annotations")
    done = proven(inferred, sources, proof, wishes, guard)
    kept = [one for file in done.files for one in file.left_out]
    left_out = (*inferred.left_out, *done.told, *kept)
    ran = tuple(tuple(sizes.items()) for sizes in runs.sizes)
    return Annotated(
        files=done.files,
        left_out=left_out,
        tensors=inferred.tensors,
        checks=done.checks,
        equal=done.equal,
        runs=ran,
        root=root,
        invented=inferred.invented,
    )


def _only(wishes: Wishes) -> str:
    return f" under --only {' '.join(wishes.only)}" if wishes.only else ""


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ShapetraceError(f"cannot read {file}: {error.strerror or error}") from error
