"""Numbers on the command line that have bounds: what lies outside is refused as wrong usage, with what is allowed."""

from __future__ import annotations

import argparse

LAST_PORT = 65_535


def count(text: str) -> int:
    """Return a whole number that is 0 or more; raises as `argparse` expects."""
    number = int(text) if text.isdecimal() else -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no count: expected a whole number, 0 or more")
    return number


def port(text: str) -> int:
    """Return the number of a TCP port, 0 for any free one; raises as `argparse` expects."""
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: expected 0 to {LAST_PORT}, 0 takes a free one")
    return number


def share(text: str) -> float:
    """Return a share of records, 0 to 1; raises as `argparse` expects."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: expected a number from 0 to 1, e.g. 0.1")
    return number
