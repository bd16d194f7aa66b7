"""Generation: one token after another, because the next does not exist yet."""

from shapetrace.model.generation.loop import Generated, Request, Step, generate
from shapetrace.model.generation.sampling import Sampling

__all__ = ["Generated", "Request", "Sampling", "Step", "generate"]
