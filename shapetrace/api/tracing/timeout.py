"""Code of other people that is stopped after a while, as by Ctrl-C."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LEAST = 1.0


@contextmanager
def stopped_after(seconds: float | None) -> Iterator[None]:
    """Interrupt a block that takes too long: `KeyboardInterrupt` is raised in it.

    Args:
        seconds: How long it may take, a second at least; None for ever. Only the main
            thread can be interrupted; any other runs on.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    timer = threading.Timer(max(seconds, _LEAST), press)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def press() -> None:
    """Press Ctrl-C; as a signal where there are any, so that a sleep ends too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
