"""A training step of ours beside transformers' on the same weights and batch.

    python -m tests.benchmarks.training [--rounds 9] [--only tiny|gpt2]

Prints CPU-time ratios, medians of interleaved rounds in one run on one thread: forward,
loss, backward and AdamW's update, dropout off, the same optimizer for both.
"""

from __future__ import annotations

import argparse
import statistics

import torch

from shapetrace.model.training import TrainingSettings, mean_loss
from shapetrace.model.training.data import TrainingBatch
from shapetrace.model.training.trainer import optimizer_of
from tests.benchmarks.generation import SIZES, models, timed

SHAPES = {"tiny": (8, 64), "gpt2": (2, 128)}


def compare(size: str, rounds: int) -> None:
    """Print the ratio for one model."""
    theirs, ours = models(size)
    theirs.train()
    ours.train()
    for module in (*theirs.modules(), *ours.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    settings = TrainingSettings()
    optimizers = {id(model): optimizer_of(model, settings) for model in (theirs, ours)}
    ids = torch.randint(0, theirs.config.vocab_size, SHAPES[size])
    batch = TrainingBatch(ids[:, :-1], ids[:, 1:])

    def update(model) -> None:
        optimizers[id(model)].step()
        optimizers[id(model)].zero_grad(set_to_none=True)

    def their_step() -> None:
        theirs(ids, labels=ids).loss.backward()
        update(theirs)

    def our_step() -> None:
        mean_loss(ours, batch).backward()
        update(ours)

    for _ in range(2):
        their_step()
        our_step()
    ratios = [timed(our_step) / timed(their_step) for _ in range(rounds)]
    print(f"{size}: training step, ours / transformers': {statistics.median(ratios):.2f}")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=tuple(SIZES))
    given = parser.parse_args()
    torch.set_num_threads(1)
    for size in [given.only] if given.only else SIZES:
        compare(size, given.rounds)


if __name__ == "__main__":
    main()
