"""What is said on stderr; that nobody hears it is no reason to fail."""

import os
import sys


def tell(text: str) -> None:
    """Write to stderr, where there is one and somebody still reads it."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(2)


def silence(descriptor: int) -> None:
    """Keep Python from failing again when it flushes a stream at exit whose reader is gone."""
    hole = os.open(os.devnull, os.O_WRONLY)
    os.dup2(hole, descriptor)
    os.close(hole)
