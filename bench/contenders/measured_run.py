"""One run of a contender: its line on standard output once the last record is through, or why there is none.

Standard library only: it is imported in the peers' environment too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable

from bench.contenders.arguments import FlowArguments
from bench.contenders.meter import Mark, Meter, between


class MeasuredRun:
    """Holds the meter of a contender that runs in this very process, and ends the process.

    Args:
        arguments: between which records it is measured, and when it gives up.
        at_end: called when the line is printed, in the thread whose call was the last one; it ends the process
            soon. Without it the process ends on the spot: consumers of a group that nobody uses again needn't leave it.
    """

    def __init__(self, arguments: FlowArguments, at_end: Callable[[], None] | None = None) -> None:
        self._arguments = arguments
        self._at_end = at_end or (lambda: os._exit(0))
        self._first: Mark | None = None
        self.meter = Meter((arguments.from_record, arguments.to_record), self._reached, arguments.beside_pid)
        self._limit = threading.Timer(arguments.limit_s, self._give_up)
        self._limit.daemon = True
        self._limit.start()

    def _reached(self, mark: Mark) -> None:
        if self._first is None:
            self._first = mark
            return
        self._limit.cancel()
        print_line(between(self._first, mark))
        self._at_end()

    def _give_up(self) -> None:
        give_up(self._arguments, self.meter.calls)


def print_line(line: dict[str, float]) -> None:
    """Print the one line that a contender has for standard output."""
    print(json.dumps(line), flush=True)


def give_up(arguments: FlowArguments, calls: int) -> None:
    """Say how far it came, and end the process with status 1."""
    print(
        f"{calls} calls of {arguments.to_record} were over after {arguments.limit_s:g} s: given up",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)
