"""SIGTERM ends a program of the tests in order, as Ctrl-C does."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130


def signals_interrupt() -> None:
    """Have SIGINT, and the first SIGTERM, raise KeyboardInterrupt from now on, in the main thread alone."""
    # A shell's background job is born deaf to SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt_once)


def _interrupt_once(number: int, _frame: FrameType | None) -> None:
    # Under `timeout` and make one SIGTERM comes two or three times, the others while everything is being ended. Not
    # SIG_IGN, which what is started would inherit.
    signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt
