"""The running part of a training: the model, its first step traced, its checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from shapetrace.api.transformer.building import build_model, check_device
from shapetrace.api.transformer.choices import plainly
from shapetrace.api.transformer.data import batches_of
from shapetrace.api.transformer.memory import ITEM_BYTES, check_fits, kept_bytes
from shapetrace.api.transformer.requests import PassRequest, TrainingRequest
from shapetrace.api.transformer.results import Trained
from shapetrace.capture.recording import record
from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelConfig, from_pretrained
from shapetrace.model.training import Data, Pairs, Trainer, TrainingSettings, take_steps
from shapetrace.model.training.checkpoint import check_checkpoint_place, load_state, save_checkpoint
from shapetrace.model.transformer import frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from shapetrace.model.training import Progress
    from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class PreparedTraining:
    """A request with its data read.

    Attributes:
        request: What is wanted.
        training: How to train.
        data: What is learnt from.
        facts: What a checkpoint says of them.
    """

    request: TrainingRequest
    training: TrainingSettings
    data: Data
    facts: Mapping[str, Any]


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


def run_training(request: TrainingRequest, on_step: Callable[[Progress], None]) -> Trained:
    """Train, and save checkpoints on the way.

    Raises:
        ShapetraceError: If the device is missing, the memory does not suffice, or a checkpoint
            cannot be read or written.
    """
    check_device(request.device)
    log = _Log()
    with plainly():
        prepared = _prepared(request)
        if request.device != "meta":
            _check_memory(prepared)
        trainer = _resumed(prepared, log) if request.resume else _fresh(prepared)
        if request.output is not None:
            check_checkpoint_place(request.output)
        if request.device == "meta":
            with torch.random.fork_rng():
                trainer.step()  # the first is as all others are: what has no value never changes
            log.taken = 1
        else:
            _run(prepared, trainer, log, on_step)
    return Trained(
        name=request.name,
        config=request.config,
        losses=tuple(log.losses),
        held_out=tuple(log.held_out),
        tokens=prepared.facts["tokens"],
        trace=trainer.trace,
        output=request.output,
        taken=log.taken,
    )


def _prepared(request: TrainingRequest) -> PreparedTraining:
    try:
        training = TrainingSettings(**request.settings)
    except TypeError as error:  # a word of Python's
        raise ShapetraceError(
            f"train: {error}".replace("TrainingSettings.__init__() ", "")
        ) from error
    data, tokens = batches_of(request, training)
    facts = {
        "data": request.data.name,
        "data_sha256": hashlib.sha256(request.text.encode()).hexdigest(),
        "tokens": tokens,
        "training": asdict(training),
    }
    return PreparedTraining(request, training, data, facts)


def _check_memory(job: PreparedTraining) -> None:
    item, n = ITEM_BYTES["float32"], job.training.seq
    parameters = sum(
        parameter.numel() * item for parameter in frame(job.request.config).parameters()
    )
    if isinstance(job.data, Pairs):
        n = min(n, job.data.longest)
    number = ITEM_BYTES["bfloat16"] if job.training.bf16 else item
    sides = 2 if job.request.config.kind == "encoder-decoder" else 1
    activations = sides * kept_bytes(job.request.config, job.training.batch, n, number)
    check_fits(
        job.request.name,
        _KEPT_PER_NUMBER * parameters,
        activations,
        job.request.device,
        _SMALLER,
        kept=_KEPT,
    )


_KEPT_PER_NUMBER = 4
"""Of each parameter: itself, its gradient, and AdamW's two moments."""

_KEPT = "parameters, gradients and optimizer state"

_SMALLER = "a smaller --batch with more of --accumulate, a smaller --seq, or a smaller model"
"""The way out of a training that does not fit."""


def _run(
    job: PreparedTraining, trainer: WatchedTrainer, log: _Log, on_step: Callable[[Progress], None]
) -> None:
    def note(progress: Progress) -> None:
        log.note(progress)
        on_step(progress)

    def save() -> None:
        if job.request.output is None:
            return
        done = trainer.step_number >= job.training.steps
        save_checkpoint(
            job.request.output,
            trainer.model,
            files=job.request.files,
            record={
                **job.facts,
                "step": trainer.step_number,
                "held_out": log.held_out,
                "losses": log.losses,
            },
            state=None if done and not job.request.keep_state else trainer.state(),
        )

    take_steps(trainer, save=save, on_step=note)


_UNFUSED = (
    "on meta the optimizer is not one fused kernel: the peak beyond the parameters holds its "
    "intermediate results too"
)


class WatchedTrainer(Trainer):
    """A trainer whose first step is traced.

    Attributes:
        trace: The first step; None where it is not traced, or not taken yet.
    """

    trace: Trace | None = None
    target = ""
    watched = False

    def step(self) -> float:
        """Take one step, watched if it is the first."""
        if not self.watched or self.step_number:
            return super().step()
        settings = self.settings
        sizes = {"B": settings.batch, "n": settings.seq}
        recording = record(
            self.model,
            target=self.target,
            config=self.model.config.to_dict(),
            sizes=sizes,
        )
        with recording:
            loss = super().step()
        notes = (_UNFUSED, *recording.trace.notes) if self.without_values else recording.trace.notes
        self.trace = replace(
            recording.trace,
            notes=notes,
            environment=(
                *recording.trace.environment,
                ("pass", "forward, backward and update"),
                ("seed", str(settings.seed)),
                *([("device", "meta"), ("weights", "none")] if self.without_values else []),
            ),
        )
        return loss


def _fresh(job: PreparedTraining) -> WatchedTrainer:
    if job.request.output is not None and (job.request.output / "config.json").is_file():
        raise ShapetraceError(
            f"{job.request.output} holds a checkpoint already; --resume goes on with it, "
            "or choose another directory"
        )
    built = PassRequest(
        name=job.request.name,
        config=job.request.config,
        weights=job.request.weights,
        device=job.request.device,
        seed=job.training.seed,
    )
    trainer = WatchedTrainer(build_model(built), job.data, job.training)
    trainer.target = job.request.name
    trainer.watched = job.request.trace
    return trainer


def _resumed(job: PreparedTraining, log: _Log) -> WatchedTrainer:
    assert job.request.output is not None  # noqa: S101 - the caller has looked
    record_, state = load_state(job.request.output)
    _check_same(job, record_)
    model = from_pretrained(job.request.output, device=job.request.device).train()
    trainer = WatchedTrainer(model, job.data, job.training)
    trainer.restore(state)
    log.losses[:] = record_.get("losses", [])
    log.held_out[:] = [(step, loss) for step, loss in record_.get("held_out", [])]
    return trainer


_MAY_CHANGE = {"steps", "evaluate_every", "save_every"}


def _check_same(job: PreparedTraining, before: Mapping[str, Any]) -> None:
    """Refuse to go on with another configuration, other data or another schedule."""
    assert job.request.output is not None  # noqa: S101 - the caller has looked
    there = ModelConfig.from_file(job.request.output)
    for name, value in job.request.config.to_dict().items():
        other = there.to_dict()[name]
        if value != other:
            raise ShapetraceError(
                f"--resume: `{name}` is {value}, but {job.request.output} was trained with {other}; "
                "give the same configuration, or another directory"
            )
    then, now = before.get("training", {}), job.facts["training"]
    for name, value in now.items():
        if name not in _MAY_CHANGE and then.get(name, value) != value:
            raise ShapetraceError(
                f"--resume: `{name}` is {value}, but {job.request.output} was trained with {then[name]}; "
                "give the same, or another directory"
            )
    if before.get("data_sha256") != job.facts["data_sha256"]:
        raise ShapetraceError(
            f"--resume: the data differs from what {job.request.output} was trained on "
            f"({before.get('data')}); give the same file, or another directory"
        )
