"""The loop of training: steps, evaluations, checkpoints, and a clean end on Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch

from shapetrace.model.training.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training stands after a step.

    Attributes:
        step: Steps taken.
        steps: Steps to take.
        loss: Per token, of the last step.
        tokens_per_second: Tokens predicted per second, lately.
        seconds_left: About the time until the end.
        held_out_loss: Per token on held-out text; None where it was not evaluated.
    """

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    seconds_left: float
    held_out_loss: float | None = None


def take_steps(
    trainer: Trainer,
    *,
    save: Callable[[], None] = lambda: None,
    on_step: Callable[[Progress], None] = lambda _: None,
) -> list[float]:
    """Take the steps that are left.

    The global random state is left as it was.

    Args:
        trainer: The model and how to train it.
        save: Writes a checkpoint; called now and then, at the end, and on Ctrl-C.
        on_step: Told of each step.

    Returns:
        The loss of each step.

    Raises:
        KeyboardInterrupt: After Ctrl-C, once the step is done and a checkpoint written.
    """
    losses: list[float] = []
    pace = _Pace(trainer)
    with torch.random.fork_rng(), _interruptible() as interrupted:
        while trainer.step_number < trainer.settings.steps:
            losses.append(trainer.step())
            done = trainer.step_number == trainer.settings.steps
            evaluated = done or trainer.step_number % trainer.settings.evaluate_every == 0
            on_step(pace.progress(losses[-1], trainer.evaluate() if evaluated else None))
            if (
                done
                or interrupted.is_set()
                or not trainer.step_number % trainer.settings.save_every
            ):
                save()
            if interrupted.is_set():
                raise KeyboardInterrupt
    return losses


class _Pace:
    """How fast it goes."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._last = time.perf_counter()
        self._seconds = 0.0

    def progress(self, loss: float, held_out_loss: float | None) -> Progress:
        now = time.perf_counter()
        taken, self._last = now - self._last, now
        self._seconds = taken if not self._seconds else 0.9 * self._seconds + 0.1 * taken
        settings, step = self._trainer.settings, self._trainer.step_number
        tokens = settings.batch * settings.seq * settings.accumulate
        left = (settings.steps - step) * self._seconds
        return Progress(
            step=step,
            steps=settings.steps,
            loss=loss,
            tokens_per_second=tokens / self._seconds,
            seconds_left=left,
            held_out_loss=held_out_loss,
        )


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Let Ctrl-C end the step first; a second one ends everything at once."""
    event = threading.Event()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as nohup wants it
        yield event
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            signal.default_int_handler(number, frame)
        event.set()

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
