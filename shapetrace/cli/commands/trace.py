"""``shapetrace trace``: one call of any PyTorch model as a table of its tensors."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from shapetrace.cli.guard import guarded
from shapetrace.cli.interrupt import CTRL_C
from shapetrace.cli.options import (
    Alias,
    Arg,
    Backward,
    Check,
    Device,
    Dtype,
    Format,
    HfConfig,
    InputFile,
    InputSpec,
    Lang,
    Layers,
    Level,
    Output,
    Save,
    Seed,
    TargetName,
    Train,
)
from shapetrace.cli.output import Style, check_outputs, note, show_trace, write
from shapetrace.errors import ModelRaisedError


def trace(
    target: TargetName,
    *,
    input_: InputSpec = None,
    inputs: InputFile = None,
    arg: Arg = None,
    hf_config: HfConfig = None,
    alias: Alias = None,
    dims: Annotated[
        Literal["explain"] | None,
        typer.Option(help="List each name with its evidence after the table.", show_default=False),
    ] = None,
    train: Train = False,
    backward: Backward = False,
    device: Device = "cpu",
    dtype: Dtype = "auto",
    seed: Seed = 0,
    check: Check = True,
    level: Level = "tensors",
    layers: Layers = None,
    lang: Lang = "en",
    format: Format = None,  # noqa: A002 - the option's name
    output: Output = None,
    save: Save = None,
) -> int:
    """Call any PyTorch model once and show every tensor.

    By name, with its named shape, sizes, bytes and FLOPs. Names come from the input specs
    and from the integers that the model is built from. When the model fails, the table up
    to there is shown, and what clashed. --backward goes back from the output's `.loss`, or
    from the sum of its outputs, and shows gradients and memory by kind.

    \b
    Examples:
      shapetrace trace net.py:Net --arg width=64 --input "x:float32[B=2,3,H=32,W=32]"
      shapetrace trace transformers:GPT2LMHeadModel --hf-config n_layer=2 \\
          --input "input_ids:int64[B=2,n=16]<50257" --dims explain
      shapetrace trace torchvision.models:resnet18 --input "float32[B=2,3,H=64,W=64]" \\
          --train --backward

    Exits with 0 when all is well, 1 when the model raises or an annotation does not hold, 2 for
    bad input, 130 after Ctrl-C.
    """  # noqa: D301 - \b keeps the examples' lines apart
    from shapetrace.api.preparing.request import Request  # noqa: PLC0415 - slow, and help needs none
    from shapetrace.api.tracing.trace_target import trace_target  # noqa: PLC0415 - needs torch
    from shapetrace.explain import explain_names  # noqa: PLC0415 - only failures need it

    place = _absolute(output)
    style = Style(level=level, layers=layers, language=lang, format=format, output=place)
    kept = _absolute(save)
    named = (target, inputs or "", *(hf_config or ()))  # net.py:Net, make.py:inputs, config.json
    check_outputs(output, save, reads=(*named, *(name.rpartition(":")[0] for name in named)))
    request = Request(
        target,
        inputs=input_ or (),
        inputs_file=inputs,
        arguments=arg or (),
        hf_config=hf_config or (),
        aliases=alias or (),
        device=device,
        dtype=dtype,
        seed=seed,
        train=train,
        backward=backward,
        check=check,
    )
    with guarded():
        outcome = trace_target(request, note, _go_on)
    if isinstance(outcome.error, KeyboardInterrupt):
        CTRL_C.forget()  # what was recorded is still to be shown
    if kept is not None:
        outcome.trace.save(kept)
    code = show_trace(outcome.trace, style)
    if dims == "explain":
        write(explain_names(outcome.trace), None)
    _raise(outcome.error)
    return code


def _go_on() -> None:
    CTRL_C.forget()
    sys.stderr.write("interrupted; showing how far one run gets\n")


def _absolute(path: Path | None) -> Path | None:
    """The path from here, wherever the model goes."""
    return None if path is None else path.absolute()


def _raise(error: BaseException | None) -> None:
    if isinstance(error, KeyboardInterrupt):
        raise error
    if error is not None:
        first = str(error).strip().partition("\n")[0]
        text = f"the model raised {type(error).__name__}: {first}; the table ends there"
        raise ModelRaisedError(text) from error
