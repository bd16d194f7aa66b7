"""Train a Transformer: from files to batches, and from steps to checkpoints and a trace."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapetrace.api.transformer.configuration import choose_config, directory_of, name_of, plainly
from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelConfig
from shapetrace.reading import read_text
from shapetrace.records.trace import Trace
from shapetrace.text import check_ids, tokenizer_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shapetrace.model.training import Data, Progress, TrainingSettings
    from shapetrace.text import Tokenizer

_MOST_MEBIBYTES = 512
"""Of a data file; its tokens are held in memory."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def _silence(_: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training came to.

    Attributes:
        name: What was trained.
        config: Its configuration.
        losses: Per token, of each step, those before a resume included.
        held_out: Steps and the loss on held-out text after them.
        tokens: Tokens of the data.
        trace: The first step, forward, backward and update; None after a resume.
        output: Where the checkpoint is; None when none was wanted.
        taken: Steps of this run; those before a resume not included.
    """

    name: str
    config: ModelConfig
    losses: tuple[float, ...]
    held_out: tuple[tuple[int, float], ...]
    tokens: int
    trace: Trace | None
    output: Path | None
    taken: int


@dataclass(slots=True)
class _Log:
    """What happens while a training runs; saved with each checkpoint."""

    losses: list[float] = field(default_factory=list)
    held_out: list[tuple[int, float]] = field(default_factory=list)
    taken: int = 0

    def note(self, progress: Progress) -> None:
        self.taken += 1
        self.losses.append(progress.loss)
        if progress.held_out_loss is not None:
            self.held_out.append((progress.step, progress.held_out_loss))


def train(
    config: str,
    data: Path,
    *,
    settings: Sequence[str] = (),
    training: Mapping[str, Any] | None = None,
    output: Path | None = None,
    resume: bool = False,
    vocabulary: int | None = None,
    attention: str | None = "fused",
    device: str = "cpu",
    trace: bool = True,
    keep_state: bool = True,
    on_step: Callable[[Progress], None] = _silence,
) -> Trained:
    """Train a Transformer on a text, or on pairs of texts.

    Args:
        config: A preset's name, a TOML or JSON file, or a Hugging Face directory, whose
            weights and tokenizer are then the beginning.
        data: A UTF-8 file: a text, or for an encoder-decoder a source, a tab and a target
            on each line.
        settings: ``key=value`` changes to the configuration.
        training: Fields of `shapetrace.model.training.TrainingSettings`.
        output: The directory for checkpoints; None for none.
        resume: Whether to go on from the checkpoint in `output`.
        vocabulary: Tokens of a BPE tokenizer to learn from the data first; None for the
            tokenizer that lies with the configuration, else bytes.
        attention: ``explicit`` or ``fused``; None for the checkpoint's or the configuration's.
        device: ``cpu`` or ``cuda``.
        trace: Whether the first step is traced.
        keep_state: Whether the last checkpoint can be resumed.
        on_step: Told of each step.

    Raises:
        ShapetraceError: For anything in this that cannot be; says what, and what to do.
    """
    from shapetrace.api.transformer.train_run import Job, run  # noqa: PLC0415 - needs torch

    with plainly():
        from shapetrace.model.training.settings import TrainingSettings  # noqa: PLC0415

        how = TrainingSettings(**dict(training or {}))
    text = read_data(data)
    folder = directory_of(config)
    spoken = output if resume and output is not None and output.is_dir() else folder
    files = _tokenizer_files(spoken)
    changes = list(settings)
    if vocabulary is not None:
        changes.append(f"vocab_size={vocabulary}")
    goes_on = output if resume else None
    chosen = choose_config(config, changes, attention or _attention_of(goes_on))
    tokenizer: Tokenizer
    if vocabulary is not None:
        from shapetrace.text.training import train_tokenizer  # noqa: PLC0415 - needs tokenizers

        tokenizer, made = train_tokenizer([text], vocabulary)
        files = {"tokenizer.json": made}
    else:
        tokenizer = tokenizer_for(spoken, chosen.vocab_size)
    with plainly():
        batches, tokens = _data(chosen, tokenizer, text, data, how)
    job = Job(
        name=name_of(config),
        config=chosen,
        weights=folder,
        training=how,
        data=batches,
        output=output,
        resume=resume,
        files=files,
        facts={
            "data": data.name,
            "data_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "tokens": tokens,
            "training": asdict(how),
        },
        device=device,
        trace=trace,
        keep_state=keep_state,
    )
    return run(job, on_step)


def _attention_of(checkpoint: Path | None) -> str | None:
    """How the model of a checkpoint attends, if there is one."""
    if checkpoint is None or not (checkpoint / "config.json").is_file():
        return None
    with plainly():
        return ModelConfig.from_file(checkpoint).attention


def read_data(file: Path) -> str:
    """The text of a data file.

    Raises:
        ShapetraceError: If it is missing, empty, or not UTF-8.
    """
    try:
        text = read_text(file, _MOST_MEBIBYTES)
    except OSError as error:
        raise ShapetraceError(f"cannot read data file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ShapetraceError(f"data file {file} is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        raise ShapetraceError(f"data file {file} is empty; give a text to learn from")
    return text


def read_pairs(text: str, file: Path) -> list[tuple[str, str]]:
    """Sources and targets: one pair on each line, with a tab between.

    Raises:
        ShapetraceError: Naming the line that is no pair.
    """
    pairs = []
    for number, line in enumerate(text.split("\n"), 1):  # other separators belong to the text
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 2 or not all(part.strip() for part in parts):  # noqa: PLR2004 - a pair
            filled = sum(1 for part in parts if part.strip())
            raise ShapetraceError(
                f"data file {file}, line {number}: expected a source, one tab and a target, "
                f"found {len(parts) - 1} tab{'' if len(parts) == 2 else 's'} "  # noqa: PLR2004
                f"and {filled} text{'' if filled == 1 else 's'}"
            )
        pairs.append((parts[0], parts[1]))
    return pairs


def _data(
    config: ModelConfig, tokenizer: Tokenizer, text: str, file: Path, training: TrainingSettings
) -> tuple[Data, int]:
    """Batches of the kind that the model learns from, and how many tokens there are."""
    from shapetrace.model.training import MaskedText, Pairs, Text  # noqa: PLC0415 - needs torch

    if config.kind == "encoder-decoder":
        pairs = read_pairs(text, file)
        sources = [_ids(config, tokenizer, source) for source, _ in pairs]
        targets = [_ids(config, tokenizer, target) for _, target in pairs]
        tokens = sum(map(len, sources)) + sum(map(len, targets))
        return Pairs(
            sources, targets, start_id(config, tokenizer), end_id(config, tokenizer)
        ), tokens
    ids = _ids(config, tokenizer, text)
    if config.kind == "decoder":
        stream = Text(ids)
        stream.check(training.seq)
        return stream, len(ids)
    mask = tokenizer.special.mask
    if mask is None:
        raise ShapetraceError(f"tokenizer {tokenizer.name} has no mask token to hide tokens with")
    masked = MaskedText(ids, mask, config.vocab_size, training.mask_rate)
    masked.check(training.seq)
    return masked, len(ids)


def _ids(config: ModelConfig, tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    ids = tokenizer.encode(text, special=False).ids
    check_ids(ids, config.vocab_size)
    return ids


def start_id(config: ModelConfig, tokenizer: Tokenizer) -> int:
    """The token that an encoder-decoder's target begins with."""
    special = tokenizer.special
    known = (config.bos_id, special.bos, config.pad_id, special.pad, config.eos_id, special.eos)
    return next((found for found in known if found is not None), 0)


def end_id(config: ModelConfig, tokenizer: Tokenizer) -> int:
    """The token that an encoder-decoder's target ends with."""
    known = (config.eos_id, tokenizer.special.eos)
    return next((found for found in known if found is not None), 0)


def _tokenizer_files(folder: Path | None) -> dict[str, bytes]:
    if folder is None:
        return {}
    places = (folder / name for name in _TOKENIZER_FILES)
    return {place.name: place.read_bytes() for place in places if place.is_file()}
