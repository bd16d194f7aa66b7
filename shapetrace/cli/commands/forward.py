"""``shapetrace forward``: one pass of a Transformer as a table of its tensors."""

from shapetrace.cli.options import (
    Attention,
    Backward,
    Batch,
    Check,
    Config,
    Device,
    Dtype,
    Format,
    Lang,
    Layers,
    Level,
    Output,
    Save,
    Seed,
    Seq,
    Set,
    TargetText,
    Text,
    TextFile,
    TokenizerChoice,
)
from shapetrace.cli.output import Style, check_outputs, note, show_trace


def forward(
    *,
    config: Config,
    set_: Set = None,
    text: Text = None,
    text_file: TextFile = None,
    batch: Batch = None,
    seq: Seq = None,
    target_text: TargetText = None,
    attention: Attention = None,
    device: Device = "cpu",
    dtype: Dtype = "auto",
    tokenizer: TokenizerChoice = "auto",
    seed: Seed = 0,
    check: Check = True,
    backward: Backward = False,
    level: Level = "tensors",
    layers: Layers = None,
    lang: Lang = "en",
    format: Format = None,  # noqa: A002 - the option's name
    output: Output = None,
    save: Save = None,
) -> int:
    """Run one forward pass and show every tensor.

    By name, with its named shape, sizes, bytes, FLOPs and meaning. Without a text, the
    input is random ids: 2 texts of 16 tokens, or as --batch and --seq say.

    \b
    Examples:
      shapetrace forward --config tiny-decoder --text "dog bites man"
      shapetrace forward --config gpt2 --batch 2 --seq 128 --save gpt2.trace
      shapetrace forward --config my.toml --set h_kv=2 --text "hello" --format json
      shapetrace forward --config llama-3.1-405b --device meta --seq 8192

    Exits with 0 when all is well, 1 when an annotation does not hold, 2 for bad input.
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace import api  # noqa: PLC0415 - slow, and help needs none

    style = Style(level=level, layers=layers, language=lang, format=format, output=output)
    check_outputs(output, save, reads=(config, text_file))
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
        tokenizer=tokenizer,
        seed=seed,
        check=check,
        backward=backward,
        progress=note,
    )
    if save is not None:
        api.save(trace, save)
    return show_trace(trace, style)
