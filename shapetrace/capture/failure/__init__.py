"""Where a run failed: the line of the model, the operands of its statement, their worth."""
