"""What the source declares of a value, and jaxtyping's verdict on it."""
