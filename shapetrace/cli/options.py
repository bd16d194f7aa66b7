"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

_STDOUT = Path("-")


def _file(output: Path | None) -> Path | None:
    """The file that is written to; ``-`` is stdout, as everywhere."""
    return None if output == _STDOUT else output


Level: TypeAlias = Annotated[
    Literal["tensors", "modules", "ops"],
    typer.Option(help="What a row is."),
]
Layers: TypeAlias = Annotated[
    Literal["fold", "all"] | None,
    typer.Option(
        help="Show equal layers once, or all. Default: fold for table and md, all for json and csv.",
        show_default=False,
    ),
]
Lang: TypeAlias = Annotated[
    Literal["en", "zh"],
    typer.Option(help="Language of headings and meanings."),
]
Format: TypeAlias = Annotated[
    Literal["table", "json", "csv", "md"] | None,
    typer.Option(
        help="Default: by the suffix of -o, else table.",
        show_default=False,
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        callback=_file,
        help="Write to this file, whole or not at all.",
    ),
]
Device: TypeAlias = Annotated[
    Literal["cpu", "cuda", "meta"],
    typer.Option(help="Where to run; meta has sizes but no values."),
]
Seed: TypeAlias = Annotated[
    int,
    typer.Option(metavar="S", min=0, max=2**64 - 1, help="Of random weights and random inputs."),
]
Check: TypeAlias = Annotated[
    bool,
    typer.Option("--check/--no-check", help="Check declared annotations."),
]
Save: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Keep the trace for `shapetrace report`.", metavar="TRACE"),
]
TargetName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="package.module:Class or path/to/file.py:thing."),
]
InputSpec: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="SPEC", help="An input: ids:int64[B=2,n=16]<1000."),
]
InputFile: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="file.py:make_inputs, a .pt or .safetensors file."),
]
Arg: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Argument of the constructor.")
]
HfConfig: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE|KEY=VALUE", help="Configuration of a Hugging Face class."),
]
Alias: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=OTHER", help="Another name for a dimension."),
]
