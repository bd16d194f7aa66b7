"""What `forward`, `generate`, `train` and `attention` do with our own Transformer."""
