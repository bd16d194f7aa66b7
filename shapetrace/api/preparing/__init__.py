"""From what the user names to a model, its inputs and a subject that can be run again."""
