"""What is to be written where: one plan per file, and how it is weakened when a run disagrees."""
