"""Generation: one token after another, because the next does not exist yet."""

from shapetrace.model.generation.loop import Generated, GenerationInput, Step, generate_tokens
from shapetrace.model.generation.sampling import Sampling

__all__ = ["Generated", "GenerationInput", "Sampling", "Step", "generate_tokens"]
