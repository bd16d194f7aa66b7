"""The source of the functions that run: found, rewritten with calls of the recorder."""
