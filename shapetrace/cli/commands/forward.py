"""``shapetrace forward``: one pass of a Transformer as a table of its tensors."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from shapetrace.cli.options import Format, Lang, Layers, Level, Output


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
        typer.Option("--text", metavar="TEXT", help="A text; give several for a padded batch."),
    ] = None,
    text_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A UTF-8 file with one text.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="B", min=1, help="Random ids: texts. Default 2."),
    ] = None,
    seq: Annotated[
        int | None,
        typer.Option("--seq", metavar="N", min=1, help="Random ids: tokens in each. Default 16."),
    ] = None,
    target_text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Target of an encoder-decoder, one per text; else the text again."
        ),
    ] = None,
    attention: Annotated[
        Literal["explicit", "fused"] | None,
        typer.Option(help="Make `scores`, or run one kernel. Default: explicit."),
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda", "meta"],
        typer.Option(help="Where to run; meta has sizes but no values."),
    ] = "cpu",
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16", "float16"],
        typer.Option(help="Of weights and activations."),
    ] = "float32",
    seed: Annotated[
        int,
        typer.Option(metavar="S", min=0, max=2**64 - 1, help="Of random weights and random ids."),
    ] = 0,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Check declared annotations."),
    ] = True,
    backward: Annotated[
        bool,
        typer.Option("--backward", help="Run the loss and the backward pass too."),
    ] = False,
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
    """Run one forward pass and show every tensor.

    By name, with its named shape, sizes, bytes, FLOPs and meaning. Without a text, the
    input is random ids.

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
    from shapetrace.records.storage import save as save_trace  # noqa: PLC0415

    style = Style(level=level, layers=layers, language=lang, format=format, output=output)
    check_writable(output, save, reads=(config, text_file))
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
        backward=backward,
        progress=note,
    )
    if save is not None:
        save_trace(trace, save)
    return show(trace, style)
