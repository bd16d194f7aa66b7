"""Training: the whole target in one parallel pass, and every parameter a little better."""

from shapetrace.model.training.checkpoint import load_state, save_checkpoint
from shapetrace.model.training.data import Data, MaskedText, Pairs, Text, TrainingBatch
from shapetrace.model.training.loop import Progress, take_steps
from shapetrace.model.training.objective import loss_of, mean_loss
from shapetrace.model.training.settings import TrainingSettings
from shapetrace.model.training.trainer import Trainer

__all__ = [
    "Data",
    "MaskedText",
    "Pairs",
    "Progress",
    "Text",
    "Trainer",
    "TrainingBatch",
    "TrainingSettings",
    "load_state",
    "loss_of",
    "mean_loss",
    "save_checkpoint",
    "take_steps",
]
