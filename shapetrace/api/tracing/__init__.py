"""What `trace` does with a target: run it once, and name its axes."""
