"""Annotate a model's source: run it at several sizes, infer, rewrite, prove.

Nothing is written here; the caller gets the new source of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapetrace.annotation.inference.infer import Wishes, infer
from shapetrace.annotation.plan.plans import LeftOut, Rewritten
from shapetrace.annotation.report import diff, summary
from shapetrace.annotation.writing import write_in_place
from shapetrace.api.annotating.observe import (
    Runs,
    instance_file,
    of_instance,
    of_target,
    origin_file,
    own_sources,
    run_all,
)
from shapetrace.api.annotating.prove import proven
from shapetrace.api.tracing.resized_inputs import remade
from shapetrace.api.tracing.trace_target import Request, read_aliases, read_inputs
from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from torch import nn

    from shapetrace.capture.proof.proof import Proof


@dataclass(frozen=True, slots=True)
class Annotated:
    """What annotating a model came to.

    Attributes:
        files: Each file's old and new source.
        left_out: What has no annotation, or a weaker one, and why.
        tensors: How many parameters and returns held a tensor.
        checks: How many values the proof checked.
        equal: In how many runs the outputs were compared with the old ones, and equal to the
            bit; none where the model itself does not give the same bits twice.
        runs: Sizes of the inputs' named axes in each run.
        root: The folder that the files belong to.
    """

    files: tuple[Rewritten, ...]
    left_out: tuple[LeftOut, ...]
    tensors: int
    checks: int
    equal: int
    runs: tuple[tuple[tuple[str, int], ...], ...]
    root: Path

    def diff(self) -> str:
        """The changes, as a unified diff."""
        return diff(self.files, self.root).decode("utf-8", "replace")

    def write(self, *, force: bool = False) -> list[Path]:
        """Replace the files; each old one stays beside it as ``.bak``.

        Args:
            force: Whether installed packages and files with uncommitted changes may be written.

        Returns:
            The files that were written.

        Raises:
            ShapetraceError: If any file may not or can't be written; then none is.
        """
        return write_in_place(self.files, force=force)

    def __str__(self) -> str:
        return summary(
            self.files, self.left_out, self.checks, self.root, equal=self.equal, runs=len(self.runs)
        )


def annotate(
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
    if not request.inputs and request.inputs_file is None:
        raise ShapetraceError(
            "no input is given; give --input, such as --input x:float32[B=2,n=16]"
        )
    aliases = read_aliases(request.aliases)
    from shapetrace.capture.proof.proof import Proof  # noqa: PLC0415
    from shapetrace.capture.target.inputs import check_signature  # noqa: PLC0415 - these need torch
    from shapetrace.capture.target.target import resolve  # noqa: PLC0415
    from shapetrace.capture.values.members import set_training  # noqa: PLC0415

    target = resolve(request.target, request.arguments, request.hf_config)
    inputs = read_inputs(request)
    progress(f"making {request.target}")
    model = set_training(target.build(seed=request.seed), mode=False)
    check_signature(model, inputs)
    origin = origin_file(request.target)
    others = (made for _, made in remade(request)) if inputs.specs is None else ()
    runs = run_all(of_target(target, model, inputs, others), origin, aliases, progress)
    text = (request.target, tuple(request.arguments), tuple(request.hf_config))
    place = own_sources(runs.traces, origin)
    proof = Proof(model, runs.calls, text, request.seed)
    return finish(runs, proof, place, wishes or Wishes(), guard=guard, progress=progress)


def annotate_instance(
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
    from shapetrace.capture.proof.proof import Proof  # noqa: PLC0415
    from shapetrace.capture.target.inputs import CallInputs  # noqa: PLC0415 - these need torch
    from shapetrace.capture.target.instances import as_module, evaluating  # noqa: PLC0415

    origin = instance_file(model)
    module = as_module(model)
    with evaluating(module):
        running = of_instance(module, CallInputs(args, kwargs), dims)
        runs = run_all(running, origin, {}, lambda _: None)
        place = own_sources(runs.traces, origin)
        return finish(runs, Proof(module, runs.calls), place, wishes or Wishes())


def finish(
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
    inferred = infer(runs.traces, runs.structures, sources, wishes)
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
    return Annotated(done.files, left_out, inferred.tensors, done.checks, done.equal, ran, root)


def _only(wishes: Wishes) -> str:
    return f" under --only {' '.join(wishes.only)}" if wishes.only else ""


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ShapetraceError(f"cannot read {file}: {error.strerror or error}") from error
