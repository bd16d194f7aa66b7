"""A generation in a report: texts, passes and their sums, by format."""
