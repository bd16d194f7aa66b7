"""``shapetrace report``: show a saved trace again."""

from pathlib import Path
from typing import Annotated

import typer

from shapetrace.cli.options import Format, Lang, Layers, Level, Output
from shapetrace.cli.output import Style, check_outputs, show_trace


def report(
    *,
    trace: Annotated[Path, typer.Argument(help="A file that --save wrote.", metavar="TRACE")],
    level: Level = "tensors",
    layers: Layers = None,
    lang: Lang = "en",
    format: Format = None,  # noqa: A002 - the option's name
    output: Output = None,
) -> int:
    """Show a saved trace again.

    In any format; nothing is run and torch is not needed.

    \b
    Examples:
      shapetrace report gpt2.trace
      shapetrace report gpt2.trace --level modules --lang zh
      shapetrace report gpt2.trace -o gpt2.csv

    Exits with 0 when all is well, 1 when an annotation did not hold or the run failed, 2 for
    bad input.
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace.records.storage import load  # noqa: PLC0415 - slow, and help needs none

    style = Style(level=level, layers=layers, language=lang, format=format, output=output)
    check_outputs(output, reads=(trace,))
    return show_trace(load(trace), style)
