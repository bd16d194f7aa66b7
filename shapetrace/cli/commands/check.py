"""``shapetrace check``: every annotation of a model that does not hold."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shapetrace.cli.guard import guarded
from shapetrace.cli.options import (
    Alias,
    Arg,
    Device,
    Dtype,
    FindingsFormat,
    HfConfig,
    InputFile,
    InputSpec,
    Output,
    Seed,
    Train,
)
from shapetrace.cli.output import check_outputs, note, write
from shapetrace.errors import ModelRaisedError, ShapetraceError
from shapetrace.report.formats.reporters import FINDINGS, choose_format

if TYPE_CHECKING:
    from shapetrace.api.checks.tally import Checked
    from shapetrace.api.preparing.request import Request
    from shapetrace.api.project import Settings
    from shapetrace.report.findings import TargetFindings


def check(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="package.module:Class or path/to/file.py:thing; those of pyproject.toml without one.",
            show_default=False,
        ),
    ] = None,
    *,
    input_: InputSpec = None,
    inputs: InputFile = None,
    arg: Arg = None,
    hf_config: HfConfig = None,
    alias: Alias = None,
    train: Train = False,
    device: Device = "cpu",
    dtype: Dtype = "auto",
    seed: Seed = 0,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Only these rules: ST101, ST1, ALL. May be repeated."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Not these rules. May be repeated.")
    ] = None,
    pedantic: Annotated[
        bool,
        typer.Option("--pedantic", help="Doubt annotations that hold, too: the rules ST5."),
    ] = False,
    format: FindingsFormat = None,  # noqa: A002 - the option's name
    output: Output = None,
) -> int:
    """Run a model at several sizes and report every annotation that does not hold.

    Arguments, returns and annotated variables, decorated or not. What to run can stand in
    pyproject.toml, with the rules; plain `shapetrace check` then runs it all:

    \b
      [tool.shapetrace]
      ignore = ["ST302"]
      [[tool.shapetrace.targets]]
      target = "net.model:Net"
      input = ["ids:int64[B=2,n=16]<1000"]
      arg = ["width=64"]

    \b
    Rules:
      ST101  size         an axis has another size than declared
      ST102  rank         a tensor has another number of axes than declared
      ST103  dtype        a tensor has another dtype than declared
      ST104  union        no alternative of a union fits
      ST105  refused      jaxtyping refuses a value for a reason of its own
      ST106  form         a value has another form than declared: a container's, or None
      ST201  unresolved   an annotation cannot be evaluated
      ST202  unbound      an expression uses a name that nothing binds before
      ST301  two-sizes    one name means two sizes in a class or a model
      ST302  by-accident  an annotation holds only by today's numbers
      ST401  forgotten    not enforced, where others in the file are, or no type checker
      ST402  unenforced   nothing in the file is enforced (off)
      ST501  never-seen   no value was ever seen to be one alternative of a union (off)

    A comment `# shapetrace: ignore` or `# shapetrace: ignore[ST302]` on the annotation's line
    silences it.

    \b
    Examples:
      shapetrace check net.py:Net --input "x:float32[B=2,3,H=32,W=32]"
      shapetrace check net.py:Net --inputs make.py:inputs --select ST1 -o findings.json

    Exits with 0 when all is well, 1 when there are findings or a model raises, 2 for bad input.
    """  # noqa: D301 - \b keeps the lines apart
    from shapetrace.api.preparing.request import Request  # noqa: PLC0415 - slow, and help needs none
    from shapetrace.api.project import read_settings  # noqa: PLC0415 - kept off the light path
    from shapetrace.check.rules import PEDANTIC, chosen  # noqa: PLC0415 - slow

    form = choose_format(format, output, FINDINGS).name
    place = None if output is None else output.absolute()  # from here, wherever the model goes
    check_outputs(place, reads=(target, (target or "").rpartition(":")[0], inputs))
    settings = read_settings(Path.cwd())
    codes = chosen(select or settings.select, ignore or (() if select else settings.ignore))
    codes |= frozenset(PEDANTIC if pedantic else ())
    if target is None:
        given = (
            input_,
            inputs,
            arg,
            hf_config,
            alias,
            train,
            device != "cpu",
            dtype != "auto",
            seed,
        )
        _refuse_options(any(given))
        requests = _configured(settings)
        with contextlib.chdir(settings.folder):  # targets and files are named from there
            checked = [_checked(one, codes) for one in requests]
        return _delivered(checked, form, place)
    request = Request(
        target,
        inputs=input_ or (),
        inputs_file=inputs,
        arguments=arg or (),
        hf_config=hf_config or (),
        aliases=alias or (),
        device=device,
        dtype=dtype,
        seed=seed,
        train=train,
    )
    return _delivered([_checked(request, codes)], form, place)


def _refuse_options(given: bool) -> None:  # noqa: FBT001 - one condition
    if given:
        raise ShapetraceError(
            "options for a model are given, but no TARGET; give one, or leave them out to run "
            "the targets of pyproject.toml"
        )


def _configured(settings: "Settings") -> "tuple[Request, ...]":
    if not settings.targets:
        raise ShapetraceError(
            f"no TARGET is given, and {settings.folder / 'pyproject.toml'} names none: give "
            "`shapetrace check net.py:Net --input x:float32[B=2,n=16]`, or a "
            "[[tool.shapetrace.targets]] there"
        )
    return settings.targets


def _delivered(several: "Sequence[Checked]", form: str, output: Path | None) -> int:
    """Show what was found; the exit code."""
    from shapetrace.report.findings import findings_summary, render_findings  # noqa: PLC0415 - slow

    results = [_shown(checked) for checked in several]
    write(render_findings(results, form), output)
    sys.stderr.write(findings_summary(results))
    failures = [_failure(checked) for checked in several if checked.error is not None]
    if failures:
        raise ModelRaisedError(failures[0])
    return 1 if any(result.findings for result in results) else 0


def _checked(request: "Request", codes: frozenset[str]) -> "Checked":
    from shapetrace.api.checks.check_target import check_target  # noqa: PLC0415 - needs torch

    with guarded():
        return check_target(request, codes, note)


def _shown(checked: "Checked") -> "TargetFindings":
    from shapetrace.report.findings import TargetFindings  # noqa: PLC0415 - slow

    error = checked.error
    return TargetFindings(
        target=checked.target,
        findings=checked.findings,
        runs=checked.runs,
        annotations=checked.annotations,
        values=checked.values,
        silenced=checked.silenced,
        notes=checked.notes,
        error="" if error is None else f"{type(error).__name__}: {error}",
        unchecked=checked.unchecked,
    )


def _failure(checked: "Checked") -> str:
    error = checked.error
    first = str(error).strip().partition("\n")[0]
    return (
        f"{checked.target} raised {type(error).__name__}: {first}; it was checked up to there "
        "(`shapetrace trace` explains where)"
    )
