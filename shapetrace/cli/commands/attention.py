"""``shapetrace attention``: who reads whom."""

from typing import Annotated

import typer

from shapetrace.cli.options import (
    AttentionFormat,
    Config,
    Lang,
    OneTargetText,
    OneText,
    Output,
    Seed,
    Set,
    TextFile,
    TokenizerChoice,
)
from shapetrace.cli.output import canvas, check_outputs, write
from shapetrace.report.formats.reporters import ATTENTION, choose_format


def attention(
    *,
    config: Config,
    text: OneText = None,
    text_file: TextFile = None,
    set_: Set = None,
    target_text: OneTargetText = None,
    layer: Annotated[
        int | None, typer.Option(metavar="L", help="Number of the block. Default: all.")
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(
            metavar="H", help="Number of the head. Default: 0, or with --query their mean."
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Show what this token (or place) reads, as bars."),
    ] = None,
    tokenizer: TokenizerChoice = "auto",
    seed: Seed = 0,
    lang: Lang = "en",
    format: AttentionFormat = None,  # noqa: A002 - the option's name
    output: Output = None,
) -> int:
    """Show what tokens read from which others, and how much.

    Without --query a table for a head: rows read, columns are read from, darker is more.
    With --query a bar for each token that it reads from. JSON and CSV have all numbers.

    \b
    Examples:
      shapetrace attention --config my-model --text "dog bites man" --layer 0 --head 1
      shapetrace attention --config my-model --text "dog bites man" --query man
      shapetrace attention --config my-model --text "dog bites man" --format csv -o who.csv

    Exits with 0 when all is well, 2 for bad input.
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace.api.transformer.attention import attention as run  # noqa: PLC0415 - slow
    from shapetrace.report.attention import as_csv, as_json, as_table  # noqa: PLC0415 - slow

    chosen = choose_format(format, output, ATTENTION).name
    check_outputs(output, reads=(config, text_file))
    view = run(
        config,
        text,
        text_file=text_file,
        settings=set_ or (),
        target_text=target_text,
        layer=layer,
        head=head,
        query=query,
        tokenizer=tokenizer,
        seed=seed,
    )
    if chosen == "table":
        write(as_table(view, canvas(output), lang), output)
    else:
        write(as_json(view) if chosen == "json" else as_csv(view), output)
    return 0
