"""What `check`, `checking` and the pytest plugin do: run, and gather findings."""
