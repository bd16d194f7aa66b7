"""Ctrl-C that falls where Python cannot raise it comes again."""

import signal
import sys
import time
import weakref

import pytest

from shapetrace.cli.interrupt import CTRL_C

WAITS = 5


class Thing:
    """Can be referred to weakly."""


def press(_=None):
    signal.raise_signal(signal.SIGINT)


class Finalized:
    def __del__(self):
        press()


def in_a_weak_reference():
    thing = Thing()
    watch = weakref.ref(thing, press)
    del thing
    return watch


def in_a_finalizer():
    Finalized()


@pytest.fixture(autouse=True)
def unraisable():
    """The hook as it was."""
    before = sys.unraisablehook
    yield
    sys.unraisablehook = before
    CTRL_C.forget()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process on Windows")
@pytest.mark.parametrize("swallowing", [in_a_weak_reference, in_a_finalizer])
def test_an_interrupt_that_a_callback_swallows_ends_the_loop(swallowing):
    with CTRL_C.watched():
        swallowing()
        assert CTRL_C.pressed
        with pytest.raises(KeyboardInterrupt):
            time.sleep(WAITS)
        time.sleep(0.05)  # and comes no second time


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process on Windows")
def test_what_has_been_dealt_with_does_not_come_again():
    with CTRL_C.watched():
        in_a_weak_reference()
        CTRL_C.forget()
        time.sleep(0.1)
