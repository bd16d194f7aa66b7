"""``shapetrace forward``: one pass of a Transformer as a table of its tensors."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from shapetrace.cli.options import Format, Lang, Layers, Level, Output

_INPUT = "Input"
_RUN = "Run"


def forward(
    *,
    config: Annotated[
        str,
        typer.Option(
            help="A preset (see `shapetrace configs`), a TOML or JSON file, or a Hugging Face directory.",
            metavar="NAME|FILE|DIR",
        ),
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one value of the configuration."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="A text; give several for a padded batch.", rich_help_panel=_INPUT),
    ] = None,
    text_file: Annotated[
        Path | None, typer.Option(help="A UTF-8 file with one text.", rich_help_panel=_INPUT)
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", help="Random ids: texts. Default 1.", rich_help_panel=_INPUT),
    ] = None,
    seq: Annotated[
        int | None,
        typer.Option("--seq", help="Random ids: tokens per text.", rich_help_panel=_INPUT),
    ] = None,
    target_text: Annotated[
        list[str] | None,
        typer.Option(
            help="The target of an encoder-decoder, one per text.", rich_help_panel=_INPUT
        ),
    ] = None,
    attention: Annotated[
        Literal["explicit", "fused"],
        typer.Option(
            help="Whether attention makes `scores` or is one kernel.", rich_help_panel=_RUN
        ),
    ] = "explicit",
    device: Annotated[
        Literal["cpu", "cuda", "meta"],
        typer.Option(help="Where to run; meta has sizes but no values.", rich_help_panel=_RUN),
    ] = "cpu",
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16", "float16"],
        typer.Option(help="Of weights and activations.", rich_help_panel=_RUN),
    ] = "float32",
    seed: Annotated[
        int, typer.Option(help="Of random weights and random ids.", rich_help_panel=_RUN)
    ] = 0,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Check declared annotations.", rich_help_panel=_RUN
        ),
    ] = True,
    level: Level = "tensors",
    layers: Layers = None,
    lang: Lang = "en",
    format: Format = None,  # noqa: A002 - the option's name
    output: Output = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Keep the trace for `shapetrace report`.", metavar="TRACE"),
    ] = None,
) -> int:
    """Run one forward pass and show every tensor: name, named shape, sizes, bytes, FLOPs.

    \b
    Examples:
      shapetrace forward --config tiny-decoder --text "dog bites man"
      shapetrace forward --config gpt2 --batch 2 --seq 128 --save gpt2.trace
      shapetrace forward --config my.toml --set h_kv=2 --text "hello" --format json
      shapetrace forward --config llama-3.1-405b --device meta --seq 8192

    Exits with 1 when an annotation does not hold, with 2 for bad input.
    """  # noqa: D301 - \b keeps the examples' lines apart
    # Imported here so that `shapetrace --help` needs neither torch nor rich.
    from shapetrace import api  # noqa: PLC0415
    from shapetrace.cli.output import Style, check_writable, note, show  # noqa: PLC0415
    from shapetrace.trace.storage import save as save_trace  # noqa: PLC0415

    style = Style(level=level, layers=layers, language=lang, format=format, output=output)
    check_writable(output)
    check_writable(save)
    trace = api.forward(
        config,
        settings=set_ or (),
        texts=text,
        text_file=text_file,
        batch=batch,
        seq=seq,
        target_texts=target_text,
        attention=attention,
        device=device,
        dtype=dtype,
        seed=seed,
        check=check,
        progress=note,
    )
    if save is not None:
        save_trace(trace, save)
    return show(trace, style)
