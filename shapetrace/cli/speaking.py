"""What `shapetrace generate` prints: text as it is made, then the report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from shapetrace.cli.output import canvas, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shapetrace.report.formats.reporters import Reporter
    from shapetrace.report.generation.records import Generation
    from shapetrace.report.language.words import Language

ARROW = " => "
"""Between a source and the target that an encoder-decoder writes for it."""


class Speaker:
    """Prints the only text as it is made; several are printed one after another at the end."""

    def __init__(self, texts: int, *, silent: bool) -> None:
        self._streams = texts == 1 and not silent
        self._silent = silent
        self._prompt = ""

    @property
    def speaks(self) -> bool:
        """Whether texts go to stdout, before the report."""
        return not self._silent

    def opening(self, prompt: str, kind: str) -> Callable[[int, str], None] | None:
        """What is told of new text; what was given to the kind of model goes before it."""
        self._prompt = prompt + _joint(kind)
        return self._say if self._streams else None

    def _say(self, _number: int, text: str) -> None:
        write(self._prompt + text, None)
        self._prompt = ""

    def finish(self, generation: Generation) -> str:
        """What is still to be printed of the texts."""
        if self._silent:
            return ""
        if self._streams:
            return self._prompt + "\n"
        joint = _joint(_kind(generation))
        parts = [
            f"[{number}] {sample.prompt}{joint}{sample.text}\n"
            for number, sample in enumerate(generation.samples, 1)
        ]
        return "".join(parts)


def _joint(kind: str) -> str:
    """What stands between a prompt and its text: a decoder goes on where the prompt ends."""
    return "" if kind == "decoder" else ARROW


def _kind(generation: Generation) -> str:
    return str(dict(generation.config).get("kind"))


def show(
    generation: Generation,
    speaker: Speaker,
    form: Reporter,
    language: Language,
    output: Path | None,
    *,
    text_only: bool,
) -> None:
    """Print what was not printed while the text was made."""
    write(speaker.finish(generation), None)
    if text_only and form.name != "json":
        if output is not None:
            joint = _joint(_kind(generation))
            texts = (f"{sample.prompt}{joint}{sample.text}\n" for sample in generation.samples)
            write("".join(texts), output)
        return
    shown = import_module(f"shapetrace.report.generation.{form.module}")
    space = "\n" if output is None and form.name == "table" and speaker.speaks else ""
    write(space + shown.render(generation, canvas(output), language), output)
