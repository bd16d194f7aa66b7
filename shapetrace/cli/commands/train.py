"""``shapetrace train``: teach a Transformer, with its first step as a table."""

from pathlib import Path
from typing import Annotated

import typer

from shapetrace.cli.options import (
    BATCH,
    SEQ,
    Attention,
    Config,
    Device,
    Format,
    Lang,
    Layers,
    Level,
    Output,
    Save,
    Seed,
    Set,
    TokenizerChoice,
    TraceIt,
)
from shapetrace.cli.output import Style, check_outputs
from shapetrace.cli.progress import Bar
from shapetrace.cli.training_report import check_shown, show_training, told_where


def train(
    *,
    config: Config,
    data: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="A UTF-8 text; for an encoder-decoder lines of source, tab and target.",
        ),
    ],
    set_: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where checkpoints go, in Hugging Face layout."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")
    ] = False,
    vocab: Annotated[
        int | None,
        typer.Option(metavar="N", help="Learn a BPE tokenizer of N tokens from the data first."),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Changes to the parameters.")] = 1000,
    batch: Annotated[int, BATCH] = 8,
    seq: Annotated[int, SEQ] = 64,
    accumulate: Annotated[
        int, typer.Option(metavar="N", help="Passes whose gradients make one step.")
    ] = 1,
    lr: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    warmup: Annotated[int, typer.Option(metavar="N", help="Steps in which it rises.")] = 20,
    weight_decay: Annotated[float, typer.Option(help="Of matrices.")] = 0.1,
    clip: Annotated[float, typer.Option(help="Longest gradient.")] = 1.0,
    bf16: Annotated[bool, typer.Option("--bf16", help="Make products in bfloat16.")] = False,
    evaluate_every: Annotated[
        int, typer.Option(metavar="N", help="Steps between looks at held-out text.")
    ] = 100,
    save_every: Annotated[int, typer.Option(metavar="N", help="Steps between checkpoints.")] = 500,
    tokenizer: TokenizerChoice = "auto",
    seed: Seed = 0,
    keep_state: Annotated[
        bool,
        typer.Option(
            "--keep-state/--no-keep-state",
            help="Whether the last checkpoint can be resumed with more steps.",
        ),
    ] = True,
    trace: TraceIt = True,
    attention: Attention = None,
    device: Device = "cpu",
    level: Level = "tensors",
    layers: Layers = None,
    lang: Lang = "en",
    format: Format = None,  # noqa: A002 - the option's name
    output: Output = None,
    save: Save = None,
) -> int:
    """Train a Transformer and show its first step.

    Decoders learn the next token, encoders hidden tokens, encoder-decoders a target.
    The first step is traced: every tensor forward, each parameter's gradient, memory by
    kind. Progress goes to stderr. Ctrl-C ends with a checkpoint.

    \b
    Examples:
      shapetrace train --config tiny-decoder --data book.txt --out my-model
      shapetrace train --config my-model --data book.txt --out my-model --resume
      shapetrace train --config tiny-encoder-decoder --data pairs.tsv --steps 500
      shapetrace train --config gpt2-xl --data book.txt --device meta --level modules

    With --device meta one step is taken without weights, for its shapes and costs; its loss
    is not known there.

    Exits with 0 when all is well, 1 when an annotation does not hold, 2 for bad input, 130
    after Ctrl-C.
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace import api  # noqa: PLC0415 - slow, and help needs none

    style = Style(level=level, layers=layers, language=lang, format=format, output=output)
    check_shown(style, save, trace=trace, resume=resume)
    check_outputs(output, save, reads=(config, data))
    with Bar() as bar, told_where(out):
        trained = api.train(
            config,
            data,
            settings=set_ or (),
            out=out,
            resume=resume,
            vocab=vocab,
            steps=steps,
            batch=batch,
            seq=seq,
            accumulate=accumulate,
            lr=lr,
            warmup=warmup,
            weight_decay=weight_decay,
            clip=clip,
            bf16=bf16,
            evaluate_every=evaluate_every,
            save_every=save_every,
            tokenizer=tokenizer,
            seed=seed,
            attention=attention or (None if resume else "explicit" if trace else "fused"),
            device=device,
            trace=trace,
            keep_state=keep_state,
            on_step=bar.step,
        )
    if save is not None and trained.trace is not None:
        api.save(trained.trace, save)
    return show_training(trained, style)
