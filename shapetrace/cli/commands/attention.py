"""``shapetrace attention``: who reads whom."""

from typing import Annotated, Literal

import typer

from shapetrace.cli.options import Lang, Output


def attention(
    *,
    config: Annotated[
        str,
        typer.Option(
            help="A preset (see `shapetrace configs`), a TOML or JSON file, or a Hugging Face directory.",
            metavar="NAME|FILE|DIR",
        ),
    ],
    text: Annotated[str, typer.Option(metavar="TEXT", help="The text that is read.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one value of the configuration."),
    ] = None,
    target_text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Target of an encoder-decoder; else the text again."),
    ] = None,
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
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Of random weights.")] = 0,
    lang: Lang = "en",
    format: Annotated[  # noqa: A002 - the option's name
        Literal["table", "json", "csv"] | None,
        typer.Option(help="Default: by the suffix of -o, else table.", show_default=False),
    ] = None,
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

    Exits with 2 for bad input.
    """  # noqa: D301 - \b keeps the examples' lines apart
    # Imported here so that `shapetrace --help` needs neither torch nor rich.
    from shapetrace.api.transformer.attention import attention as run  # noqa: PLC0415
    from shapetrace.cli.output import canvas, check_writable, write  # noqa: PLC0415
    from shapetrace.report.attention import as_csv, as_json, as_table  # noqa: PLC0415
    from shapetrace.report.formats.reporters import CSV, JSON, TABLE, choose  # noqa: PLC0415

    chosen = choose(format, output, (TABLE, JSON, CSV)).name
    check_writable(output, reads=(config,))
    view = run(
        config,
        text,
        settings=set_ or (),
        target_text=target_text,
        layer=layer,
        head=head,
        query=query,
        seed=seed,
    )
    if chosen == "table":
        write(as_table(view, canvas(output), lang), output)
    else:
        write(as_json(view) if chosen == "json" else as_csv(view), output)
    return 0
