"""``shapetrace generate``: text from a Transformer, with every pass and its cost."""

from pathlib import Path
from typing import Annotated

import typer

from shapetrace.cli.options import (
    Attention,
    Config,
    Device,
    Dtype,
    GenerationFormat,
    Lang,
    Output,
    Prompt,
    Save,
    Seed,
    Set,
    TextFile,
    TokenizerChoice,
    TraceIt,
)
from shapetrace.cli.output import check_outputs
from shapetrace.cli.speaking import Speaker, show
from shapetrace.errors import ShapetraceError
from shapetrace.report.formats.reporters import GENERATION, JSON, TABLE, Reporter, choose_format


def generate(
    *,
    config: Config,
    prompt: Prompt = None,
    text_file: TextFile = None,
    set_: Set = None,
    max_new_tokens: Annotated[
        int, typer.Option(metavar="N", help="The most tokens to make for each.")
    ] = 64,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="The likeliest token each time; the default.")
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Draw; below 1 the likely tokens become likelier.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", help="Draw from the K likeliest tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(metavar="P", help="Draw from the fewest tokens that reach probability P."),
    ] = None,
    tokenizer: TokenizerChoice = "auto",
    seed: Seed = 0,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="End a text after this token. May be repeated."),
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Texts to make from each prompt.")] = 1,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep keys and values, or recompute.")
    ] = True,
    attention: Attention = None,
    device: Device = "cpu",
    dtype: Dtype = "auto",
    trace: TraceIt = True,
    text_only: Annotated[
        bool, typer.Option("--text-only", help="Print the text and nothing else.")
    ] = False,
    lang: Lang = "en",
    format: GenerationFormat = None,  # noqa: A002 - the option's name
    output: Output = None,
    save: Save = None,
) -> int:
    """Generate text and show every pass.

    Prompts are read at once (prefill), then one token follows another, with the keys and
    values of those before kept. Text is printed as it is made; then the passes with their
    shapes, FLOPs, cache and time.

    \b
    Examples:
      shapetrace generate --config my-model --prompt "Once upon a time"
      shapetrace generate --config my-model --prompt "A" --temperature 0.8 --top-p 0.9 --samples 3
      shapetrace generate --config gpt2 --prompt "dog bites man" --format json
      shapetrace generate --config llama-3.1-405b --device meta --prompt "dog bites man"

    On meta, with --device meta, every pass has its shapes and costs, and as many tokens are
    made as --max-new-tokens says; which they are, and how long it takes, is not known there.

    Exits with 0 when all is well, 2 for bad input, 130 after Ctrl-C.
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace import api  # noqa: PLC0415 - slow, and help needs none

    if greedy and (temperature is not None or top_k is not None or top_p is not None):
        raise ShapetraceError(
            "--greedy takes the likeliest token; leave out --temperature, --top-k and --top-p"
        )
    chosen = _chosen(format, output, text_only=text_only)
    check_outputs(output, save, reads=(config, text_file))
    several = (prompt or []) if text_file is None else [*(prompt or []), ""]
    silent = chosen is not TABLE or output is not None or device == "meta"
    speaker = Speaker(texts=len(several) * samples, silent=silent)
    kind = api.choose_config(config, set_ or ()).kind
    generation = api.generate(
        config,
        prompt or (),
        text_file=text_file,
        settings=set_ or (),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        tokenizer=tokenizer,
        seed=seed,
        stop=stop or (),
        samples=samples,
        cache=cache,
        attention=attention,
        device=device,
        dtype=dtype,
        trace=(trace and not text_only) or save is not None,
        on_text=speaker.opening(prompt[0], kind) if prompt else None,
    )
    if save is not None and generation.trace is not None:
        api.save(generation.trace, save)
    show(generation, speaker, chosen, lang, output, text_only=text_only)
    return 0


def _chosen(name: str | None, output: Path | None, *, text_only: bool) -> Reporter:
    """The format; a file for the texts alone may be called anything."""
    bare = text_only and (output is None or output.suffix.lower() not in JSON.suffixes)
    return TABLE if bare and name is None else choose_format(name, output, GENERATION)
