"""Every option that more than one command has, declared once: its name, its words, its values.

What a value may be is checked by what the command calls, so that Python says the same of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelError
from shapetrace.model.settings import check_seed
from shapetrace.report.formats.reporters import (
    ATTENTION,
    FINDINGS,
    GENERATION,
    REPORTERS,
    ResultFormat,
)

_STDOUT = Path("-")


def _file(output: Path | None) -> Path | None:
    """The file that is written to; ``-`` is stdout, as everywhere."""
    return None if output == _STDOUT else output


def _seed(seed: int) -> int:
    """A seed that torch can take, before anything runs."""
    try:
        check_seed(seed)
    except ModelError as error:
        raise ShapetraceError(str(error)) from error
    return seed


def _several(metavar: str, text: str, *names: str) -> Any:
    """An option that may be given several times, and says so."""
    return typer.Option(*names, metavar=metavar, help=f"{text} May be repeated.")


def _format(offered: Sequence[ResultFormat]) -> Any:
    """``--format`` with the formats that a kind of result can be shown in."""
    return typer.Option(
        "--format",
        metavar=f"<{'|'.join(form.name for form in offered)}>",
        help=f"Default: by the suffix of -o, else {offered[0].name}.",
        show_default=False,
    )


# What is run.
Config: TypeAlias = Annotated[
    str,
    typer.Option(
        help="A preset (see `shapetrace configs`), a TOML or JSON file, or a Hugging Face directory.",
        metavar="NAME|FILE|DIR",
    ),
]
Set: TypeAlias = Annotated[
    list[str] | None,
    _several("KEY=VALUE", "Change one value of the configuration.", "--set"),
]
TargetName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="package.module:Class or path/to/file.py:thing."),
]
Arg: TypeAlias = Annotated[
    list[str] | None, _several("KEY=VALUE", "Argument of the constructor.", "--arg")
]
HfConfig: TypeAlias = Annotated[
    list[str] | None,
    _several("FILE|KEY=VALUE", "Configuration of a Hugging Face class.", "--hf-config"),
]

# What it is given.
Text: TypeAlias = Annotated[
    list[str] | None, _several("TEXT", "A text; several make a padded batch.", "--text")
]
OneText: TypeAlias = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="The text that is read.")
]
Prompt: TypeAlias = Annotated[
    list[str] | None, _several("TEXT", "What to continue; several make a batch.", "--prompt")
]
TextFile: TypeAlias = Annotated[
    Path | None, typer.Option("--text-file", metavar="FILE", help="A UTF-8 file with one text.")
]
TargetText: TypeAlias = Annotated[
    list[str] | None,
    _several(
        "TEXT",
        "Target of an encoder-decoder, one per text; else the text again.",
        "--target-text",
    ),
]
OneTargetText: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--target-text",
        metavar="TEXT",
        help="Target of an encoder-decoder; else the text again.",
    ),
]
BATCH = typer.Option("--batch", metavar="B", help="Texts in a pass.")
Batch: TypeAlias = Annotated[int | None, BATCH]
SEQ = typer.Option("--seq", metavar="N", help="Tokens of each text.")
Seq: TypeAlias = Annotated[int | None, SEQ]
InputSpec: TypeAlias = Annotated[
    list[str] | None, _several("SPEC", "An input: ids:int64[B=2,n=16]<1000.", "--input")
]
InputFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--inputs", metavar="FILE", help="file.py:make_inputs, a .pt or .safetensors file."
    ),
]

# How it is run.
Attention: TypeAlias = Annotated[
    Literal["explicit", "fused"] | None,
    typer.Option(help="Make `scores`, or run one kernel. Default: explicit where it is traced."),
]
Device: TypeAlias = Annotated[
    Literal["cpu", "cuda", "meta"],
    typer.Option(help="Where to run; meta has sizes but no values."),
]
Dtype: TypeAlias = Annotated[
    Literal["auto", "float32", "float64", "bfloat16", "float16"],
    typer.Option(help="Of weights and activations; auto: as the weights are kept, or made."),
]
TokenizerChoice: TypeAlias = Annotated[
    Literal["auto", "bytes"],
    typer.Option("--tokenizer", help="The model's own, or bytes whatever it has."),
]
Seed: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="S", callback=_seed, help="Of random weights, inputs and draws; 0 to 2^64 - 1."
    ),
]
Check: TypeAlias = Annotated[
    bool,
    typer.Option("--check/--no-check", help="Check declared annotations."),
]
TraceIt: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--trace/--no-trace",
        help="Record every tensor: of every pass, or of the first step of a training.",
    ),
]
Train: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--train", help="Run in training mode (dropout, batch statistics), with gradients on."
    ),
]
Backward: TypeAlias = Annotated[
    bool,
    typer.Option("--backward", help="Run the loss and the backward pass too."),
]

# How the result is shown, and where it goes.
Alias: TypeAlias = Annotated[
    list[str] | None, _several("NAME=OTHER", "Another name for a dimension.", "--alias")
]
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
Format: TypeAlias = Annotated[str | None, _format(REPORTERS)]
GenerationFormat: TypeAlias = Annotated[str | None, _format(GENERATION)]
AttentionFormat: TypeAlias = Annotated[str | None, _format(ATTENTION)]
FindingsFormat: TypeAlias = Annotated[str | None, _format(FINDINGS)]
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
Save: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Keep the trace for `shapetrace report`.", metavar="TRACE"),
]
