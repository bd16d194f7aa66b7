"""Ctrl-C, kept in mind: torch, half imported, swallows it or turns it into other errors."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LATER = 0.01
"""Seconds after which a callback that swallowed an interrupt has ended."""


class CtrlC:
    """Whether Ctrl-C was pressed.

    Attributes:
        pressed: Set by the first one.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._swallowed = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Interrupt, as Python does by itself."""
        self.pressed = True
        self._swallowed = False
        sys.unraisablehook = self._press_again
        raise KeyboardInterrupt

    def _press_again(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Interrupt a little later what an interrupt that fell into a callback did not end."""
        if self.pressed and issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._swallowed = True
            timer = threading.Timer(_LATER, self._press_if_swallowed)
            timer.daemon = True
            timer.start()

    def _press_if_swallowed(self) -> None:
        if self._swallowed and self.pressed:
            from shapetrace.api.tracing.timeout import press  # noqa: PLC0415 - help needs none

            press()

    def check(self) -> None:
        """Interrupt again where the first one was swallowed."""
        if self.pressed:
            self._swallowed = False
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


CTRL_C = CtrlC()
"""There is one keyboard."""
