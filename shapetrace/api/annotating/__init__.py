"""What `annotate` does: observe runs, infer, write, and prove what was written."""
