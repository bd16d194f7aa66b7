"""Which sizes of a model can be changed, and runs at changed sizes that show what moves."""
