"""Ctrl-C, kept in mind: torch, half imported, swallows it or turns it into other errors."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class CtrlC:
    """Whether Ctrl-C was pressed.

    Attributes:
        pressed: Set by the first one.
    """

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Interrupt, as Python does by itself."""
        self.pressed = True
        sys.unraisablehook = _say_nothing  # one that falls into a callback is not raised
        raise KeyboardInterrupt

    def check(self) -> None:
        """Interrupt again where the first one was swallowed."""
        if self.pressed:
            raise KeyboardInterrupt

    def forget(self) -> None:
        """Take it as dealt with: what was interrupted has ended, and something else begins."""
        self.pressed = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Listen during a block; only the main thread can."""
        self.pressed = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _say_nothing(_unraisable: object) -> None:
    """Ctrl-C was pressed: what cannot be raised any more is of no interest."""


CTRL_C = CtrlC()
"""There is one keyboard."""
