"""Numbers on the command lines of the tests' programs: what lies outside is refused with what is allowed."""

from __future__ import annotations

import argparse


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
