"""``shapetrace annotate``: jaxtyping annotations written from real runs, and proven."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shapetrace.cli.guard import guarded
from shapetrace.cli.options import Alias, Arg, HfConfig, InputFile, InputSpec, TargetName
from shapetrace.cli.output import canvas, note, write_bytes
from shapetrace.errors import ShapetraceError

if TYPE_CHECKING:
    from shapetrace.annotation import Rewritten
    from shapetrace.api.annotating.annotated import Annotated as Result


def annotate(
    target: TargetName,
    *,
    input_: InputSpec = None,
    inputs: InputFile = None,
    arg: Arg = None,
    hf_config: HfConfig = None,
    alias: Alias = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show a diff (the default).")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Replace the files; old ones stay as .bak.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write annotated copies there."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write files with uncommitted changes, installed ones too."),
    ] = False,
    locals_: Annotated[
        Literal["none", "first", "all"],
        typer.Option("--locals", help="Annotate variables too: their first assignment, or all."),
    ] = "none",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Files, or functions such as 'Attention.*'. May be repeated."
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Replace shapes that are there; bare tensors get shapes anyway."
        ),
    ] = False,
    exact_dtype: Annotated[
        bool, typer.Option("--exact-dtype", help="Float32 and not Float, where only that came.")
    ] = False,
) -> int:
    """Write jaxtyping annotations into a model's source, from runs at several sizes.

    The new source is proven by running it; a diff is shown unless --write or -o is given.

    \b
    Examples:
      shapetrace annotate net.py:Net --input "x:float32[B=2,3,H=32,W=32]"
      shapetrace annotate net.py:Net --input "x:float32[B=2,n=8,16]" --locals first --write

    Exits with 0 when all is well, 1 when the model raises, 2 for bad input, 130 after Ctrl-C.
    """  # noqa: D301 - \b keeps the examples' lines apart
    _refuse_contradictions(diff=diff, write=write, output=output, force=force)
    from shapetrace.annotation import Wishes, check_source_writable  # noqa: PLC0415 - LibCST is slow
    from shapetrace.api.annotating.annotate import annotate_target  # noqa: PLC0415 - needs torch
    from shapetrace.api.preparing.request import Request  # noqa: PLC0415 - slow

    request = Request(
        target,
        inputs=input_ or (),
        inputs_file=inputs,
        arguments=arg or (),
        hf_config=hf_config or (),
        aliases=alias or (),
    )
    wishes = Wishes(locals_, tuple(only or ()), exact_dtype=exact_dtype, replace=replace)
    _refuse_full(output)

    def guard(file: str) -> None:
        if write:
            check_source_writable(file, force=force)

    with guarded():
        result = annotate_target(request, wishes, guard=guard, progress=note)
    return _deliver(result, write=write, output=output, force=force)


def _deliver(result: "Result", *, write: bool, output: Path | None, force: bool) -> int:
    from shapetrace.annotation import write_copies, write_in_place  # noqa: PLC0415 - LibCST is slow

    if write:
        written = write_in_place(result.files, force=force)
    elif output is not None:
        written = write_copies(result.files, output, result.root)
    else:
        written = []
        _show_diff(result.files, result.root)
    for path in written:
        sys.stderr.write(f"wrote {path}\n")
    sys.stderr.write(str(result))
    return 0


def _show_diff(files: "Sequence[Rewritten]", root: Path) -> None:
    from shapetrace.annotation import diff  # noqa: PLC0415 - LibCST is slow

    base = Path.cwd() if _all_below(files, Path.cwd()) else root
    write_bytes(diff(files, base, color=canvas(None).color))


def _all_below(files: "Sequence[Rewritten]", folder: Path) -> bool:
    return all(Path(file.file).is_relative_to(folder) for file in files)


def _refuse_contradictions(*, diff: bool, write: bool, output: Path | None, force: bool) -> None:
    chosen = [name for name, given in (("--diff", diff), ("--write", write)) if given]
    chosen += ["-o"] if output is not None else []
    if len(chosen) > 1:
        raise ShapetraceError(f"{' and '.join(chosen)} are both given; give one of them")
    if force and not write:
        raise ShapetraceError("--force goes with --write; nothing else needs it")


def _refuse_full(output: Path | None) -> None:
    if output is not None and output.exists() and not output.is_dir():
        raise ShapetraceError(f"-o {output}: it is a file, not a folder; choose another")
