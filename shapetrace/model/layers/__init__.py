"""The parts of a Transformer: attention, feed-forward, norms, positions, embedding, heads."""
