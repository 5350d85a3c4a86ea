"""What the programs of the tests share: SIGTERM ends them as Ctrl-C does, and numbers among their arguments."""

from __future__ import annotations

import argparse
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


def at_least_one(text: str) -> int:
    """Return a whole number that is 1 or more; raises as `argparse` expects."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"saw {text!r}, expected a whole number, 1 or more")
    return number


def positive(text: str) -> float:
    """Return a number that is more than 0 and finite; raises as `argparse` expects."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"saw {text!r}, expected a number, more than 0")
    return number
