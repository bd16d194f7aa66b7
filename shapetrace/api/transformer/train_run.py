"""The running part of a training: the model, its first step traced, its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapetrace.api.transformer.configuration import plainly
from shapetrace.api.transformer.memory import ITEM_BYTES, check_fits, kept_bytes
from shapetrace.api.transformer.run_pass import Plan, build_model, check_device
from shapetrace.api.transformer.training import Trained, _Log
from shapetrace.capture.record_training import TrainingRecording
from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelConfig
from shapetrace.model.training import Data, Pairs, Trainer, TrainingSettings
from shapetrace.model.training import train as take_steps
from shapetrace.model.training.checkpoint import check_place, load_state, save_checkpoint
from shapetrace.model.transformer import frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.optim import Optimizer

    from shapetrace.model.training import Batch, Progress
    from shapetrace.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Job:
    """A training that is about to run; see `shapetrace.api.training.train`."""

    name: str
    config: ModelConfig
    weights: Path | None
    training: TrainingSettings
    data: Data
    output: Path | None
    resume: bool
    files: Mapping[str, bytes]
    facts: Mapping[str, Any]
    device: str
    trace: bool
    keep_state: bool


def run(job: Job, on_step: Callable[[Progress], None]) -> Trained:
    """Train, and save checkpoints on the way.

    Raises:
        ShapetraceError: If the device is missing, the memory does not suffice, or a checkpoint
            cannot be read or written.
    """
    check_device(job.device)
    _check_memory(job)
    log = _Log()
    with plainly():
        trainer = _resumed(job, log) if job.resume else _fresh(job)
        if job.output is not None:
            check_place(job.output)
        _run(job, trainer, log, on_step)
    return Trained(
        job.name,
        job.config,
        tuple(log.losses),
        tuple(log.held_out),
        job.facts["tokens"],
        trainer.trace,
        job.output,
        log.taken,
    )


def _check_memory(job: Job) -> None:
    item, n = ITEM_BYTES["float32"], job.training.seq
    parameters = sum(parameter.numel() * item for parameter in frame(job.config).parameters())
    if isinstance(job.data, Pairs):
        n = min(n, job.data.longest)
    number = ITEM_BYTES["bfloat16"] if job.training.bf16 else item
    sides = 2 if job.config.kind == "encoder-decoder" else 1
    activations = sides * kept_bytes(job.config, job.training.batch, n, number)
    check_fits(
        job.name, _KEPT_PER_NUMBER * parameters, activations, job.device, _SMALLER, kept=_KEPT
    )


_KEPT_PER_NUMBER = 4
"""Of each parameter: itself, its gradient, and AdamW's two moments."""

_KEPT = "parameters, gradients and optimizer state"

_SMALLER = "a smaller --batch with more of --accumulate, a smaller --seq, or a smaller model"
"""The way out of a training that does not fit."""


def _run(job: Job, trainer: WatchedTrainer, log: _Log, on_step: Callable[[Progress], None]) -> None:
    def note(progress: Progress) -> None:
        log.note(progress)
        on_step(progress)

    def save() -> None:
        if job.output is None:
            return
        done = trainer.step_number >= job.training.steps
        save_checkpoint(
            job.output,
            trainer.model,
            files=job.files,
            record={
                **job.facts,
                "step": trainer.step_number,
                "held_out": log.held_out,
                "losses": log.losses,
            },
            state=None if done and not job.keep_state else trainer.state(),
        )

    take_steps(trainer, save=save, on_step=note)


class WatchedTrainer(Trainer):
    """A trainer whose first step is traced.

    Attributes:
        trace: The first step; None where it is not traced, or not taken yet.
    """

    trace: Trace | None = None
    target = ""
    watched = False
    _recording: TrainingRecording | None = None

    def step(self) -> float:
        """Take one step, watched if it is the first."""
        if not self.watched or self.step_number:
            return super().step()
        settings = self.settings
        sizes = {"B": settings.batch, "n": settings.seq}
        recording = TrainingRecording(
            self.model,
            target=self.target,
            config=self.model.config.to_dict(),
            sizes=sizes,
        )
        self._recording = recording

        def updated(optimizer: Optimizer, *_: object) -> None:
            recording.mark_state(optimizer)

        handle = self.optimizer.register_step_post_hook(updated)
        try:
            with recording:
                loss = super().step()
        finally:
            handle.remove()
            self._recording = None
        self.trace = replace(
            recording.trace,
            environment=(
                *recording.trace.environment,
                ("pass", "forward, backward and update"),
                ("seed", str(settings.seed)),
            ),
        )
        return loss

    def passed(self, batch: Batch, predicted: int) -> float:
        """Forward and backward of one batch; its part of the loss."""
        loss = super().passed(batch, predicted)
        if self._recording is not None:
            self._recording.mark_gradients()
        return loss


def _fresh(job: Job) -> WatchedTrainer:
    if job.output is not None and (job.output / "config.json").is_file():
        raise ShapetraceError(
            f"{job.output} holds a checkpoint already; --resume goes on with it, "
            "or choose another directory"
        )
    plan = Plan(
        job.name, job.config, job.weights, job.device, "float32", job.training.seed, check=False
    )
    trainer = WatchedTrainer(build_model(plan), job.data, job.training)
    trainer.target = job.name
    trainer.watched = job.trace
    return trainer


def _resumed(job: Job, log: _Log) -> WatchedTrainer:
    from shapetrace.model import from_pretrained  # noqa: PLC0415 - needs safetensors

    if job.output is None:
        raise ShapetraceError("--resume needs --out, the directory with the checkpoint")
    record_, state = load_state(job.output)
    _check_same(job, record_)
    model = from_pretrained(job.output, device=job.device).train()
    trainer = WatchedTrainer(model, job.data, job.training)
    trainer.restore(state)
    log.losses[:] = record_.get("losses", [])
    log.held_out[:] = [(step, loss) for step, loss in record_.get("held_out", [])]
    return trainer


_MAY_CHANGE = {"steps", "evaluate_every", "save_every"}


def _check_same(job: Job, before: Mapping[str, Any]) -> None:
    """Refuse to go on with another configuration, other data or another schedule."""
    assert job.output is not None  # noqa: S101 - the caller has looked
    there = ModelConfig.from_file(job.output)
    for name, value in job.config.to_dict().items():
        other = there.to_dict()[name]
        if value != other:
            raise ShapetraceError(
                f"--resume: `{name}` is {value}, but {job.output} was trained with {other}; "
                "give the same configuration, or another directory"
            )
    then, now = before.get("training", {}), job.facts["training"]
    for name, value in now.items():
        if name not in _MAY_CHANGE and then.get(name, value) != value:
            raise ShapetraceError(
                f"--resume: `{name}` is {value}, but {job.output} was trained with {then[name]}; "
                "give the same, or another directory"
            )
    if before.get("data_sha256") != job.facts["data_sha256"]:
        raise ShapetraceError(
            f"--resume: the data differs from what {job.output} was trained on "
            f"({before.get('data')}); give the same file, or another directory"
        )
