"""``shapetrace generate``: text from a Transformer, with every pass and its cost."""

from typing import Annotated, Literal

import typer

from shapetrace.cli.options import Lang, Output, Save


def generate(
    *,
    config: Annotated[
        str,
        typer.Option(
            help="A preset (see `shapetrace configs`), a TOML or JSON file, or a Hugging Face directory.",
            metavar="NAME|FILE|DIR",
        ),
    ],
    prompt: Annotated[
        list[str],
        typer.Option(metavar="TEXT", help="What to continue; give several for a batch."),
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one value of the configuration."),
    ] = None,
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
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Of the draws.")] = 0,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="End a text after this token; may be repeated."),
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Texts to make from each prompt.")] = 1,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep keys and values, or recompute.")
    ] = True,
    attention: Annotated[
        Literal["explicit", "fused"] | None,
        typer.Option(help="Make `scores`, or run one kernel. Default: explicit when traced."),
    ] = None,
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Where to run.")] = "cpu",
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16", "float16"],
        typer.Option(help="Of weights and activations."),
    ] = "float32",
    trace: Annotated[
        bool, typer.Option("--trace/--no-trace", help="Record every tensor of every pass.")
    ] = True,
    text_only: Annotated[
        bool, typer.Option("--text-only", help="Print the text and nothing else.")
    ] = False,
    lang: Lang = "en",
    format: Annotated[  # noqa: A002 - the option's name
        Literal["table", "json"] | None,
        typer.Option(help="Default: by the suffix of -o, else table.", show_default=False),
    ] = None,
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

    Exits with 2 for bad input.
    """  # noqa: D301 - \b keeps the examples' lines apart
    # Imported here so that `shapetrace --help` needs neither torch nor rich.
    from shapetrace.api.transformer.configuration import choose_config  # noqa: PLC0415
    from shapetrace.api.transformer.generation import generate as run  # noqa: PLC0415
    from shapetrace.cli.output import check_writable  # noqa: PLC0415
    from shapetrace.cli.speaking import Speaker, show  # noqa: PLC0415
    from shapetrace.errors import ShapetraceError  # noqa: PLC0415
    from shapetrace.records.storage import save as save_trace  # noqa: PLC0415
    from shapetrace.report.formats.reporters import JSON, TABLE, choose  # noqa: PLC0415

    if greedy and (temperature is not None or top_k is not None or top_p is not None):
        raise ShapetraceError(
            "--greedy takes the likeliest token; leave out --temperature, --top-k and --top-p"
        )
    bare = text_only and (output is None or output.suffix.lower() not in JSON.suffixes)
    chosen = format or ("table" if bare else choose(None, output, (TABLE, JSON)).name)
    check_writable(output, save, reads=(config,))
    speaker = Speaker(texts=len(prompt) * samples, silent=chosen == "json" or output is not None)
    kind = choose_config(config, set_ or ()).kind
    generation = run(
        config,
        prompt,
        settings=set_ or (),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
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
        save_trace(generation.trace, save)
    show(generation, speaker, chosen, lang, output, text_only=text_only)
    return 0
