"""What `shapetrace train` prints when it is done."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shapetrace.cli.output import Style, show_trace, tell, write
from shapetrace.errors import ShapetraceError
from shapetrace.report.formats.reporters import REPORTERS, TABLE, choose_format
from shapetrace.report.language.words import word

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapetrace.api.transformer.results import Trained
    from shapetrace.report.language.words import Language


def show_training(trained: Trained, style: Style) -> int:
    """Show the first step, and where the training came to."""
    code = 0 if trained.trace is None else show_trace(trained.trace, style)
    if style.output is None and choose_format(style.format, None, REPORTERS) is not TABLE:
        tell(
            training_summary(trained, style.language)
        )  # stdout holds one document, and nothing else
    else:
        write(training_summary(trained, style.language), None)
    return code


def check_shown(style: Style, save: Path | None, *, trace: bool, resume: bool) -> None:
    """Refuse to write or keep the first step where none is going to be traced.

    Raises:
        ShapetraceError: Naming both options.
    """
    options = {"--save": save, "--output": style.output}
    given = next((name for name, value in options.items() if value is not None), None)
    if given is None or (trace and not resume):
        return
    without = "--resume" if resume else "--no-trace"
    raise ShapetraceError(
        f"{given} is for the trace of the first step, and with {without} there is none; "
        "leave out one of them"
    )


@contextmanager
def told_where(output: Path | None) -> Iterator[None]:
    """After Ctrl-C, say on stderr which checkpoint there is to go on from."""
    try:
        yield
    except KeyboardInterrupt:
        step = None if output is None else _step_of(output)
        if step is not None:
            tell(f"\ninterrupted; checkpoint of step {step}: {output} (--resume goes on from it)\n")
        raise


def _step_of(checkpoint: Path) -> int | None:
    """The step of a checkpoint; None where there is none that can be read."""
    try:
        record = json.loads((checkpoint / "training.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    step = record.get("step") if isinstance(record, dict) else None
    return step if isinstance(step, int) else None


def training_summary(trained: Trained, language: Language) -> str:
    """A line or two: steps, losses, where the checkpoint is."""
    if trained.without_values:
        return f"{word('one step without values: the loss is not known', language)}\n"
    say = _summary_in_chinese if language == "zh" else _summary
    lines = [say(trained)] if trained.taken else [word("nothing was left to train", language)]
    if trained.output is not None:
        lines.append(f"{word('checkpoint', language)}: {trained.output}")
    return "".join(f"{line}\n" for line in lines)


def _summary(trained: Trained) -> str:
    steps, before = len(trained.losses), len(trained.losses) - trained.taken
    held = f", held-out loss {trained.held_out[-1][1]:.4f}" if trained.held_out else ""
    return (
        f"trained {steps} step{'' if steps == 1 else 's'} "
        + (f"({before} before this run) " if before else "")
        + f"on {trained.tokens:,} tokens of data: "
        f"loss {trained.losses[0]:.4f} -> {trained.losses[-1]:.4f}{held}"
    )


def _summary_in_chinese(trained: Trained) -> str:
    before = len(trained.losses) - trained.taken
    held = f"，留出文本损失 {trained.held_out[-1][1]:.4f}" if trained.held_out else ""
    return (
        f"训练了 {len(trained.losses)} 步"
        + (f"（其中 {before} 步在本次之前）" if before else "")
        + f"，数据共 {trained.tokens:,} 个 token："
        f"损失 {trained.losses[0]:.4f} -> {trained.losses[-1]:.4f}{held}"
    )
