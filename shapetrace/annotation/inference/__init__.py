"""From observed values to annotations: which names, shapes and types each function may promise."""
