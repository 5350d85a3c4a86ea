"""Since when each call runs: kept only if the concurrency limit or the cancellation of blocked calls needs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from processor.flow.concurrency import EndedCall
from processor.protocol.events import Calls
from processor.protocol.record import Entry
from processor.protocol.results import Failed


class _Started(NamedTuple):
    started_s: float
    running: int


class RunningCalls:
    """The calls that run, the oldest first."""

    def __init__(self) -> None:
        self._calls: dict[Entry, _Started] = {}

    def started(self, entries: Iterable[Entry], running: int, now_s: float) -> None:
        """Note calls that start; ``running`` is how many run now, these included."""
        self._calls.update(dict.fromkeys(entries, _Started(now_s, running)))

    def ended(self, calls: Calls, now_s: float) -> list[EndedCall]:
        """Note calls that have ended; return those that have a result."""
        ended: list[EndedCall] = []
        for entry, result in calls:
            started_s, running = self._calls.pop(entry)
            if result is not None:
                failed = isinstance(result, Failed) and result.retriable
                ended.append(EndedCall(now_s - started_s, running, failed))
        return ended

    def started_before(self, moment_s: float) -> list[Entry]:
        """Return the calls that run since before a moment, the oldest first."""
        old: list[Entry] = []
        for entry, call in self._calls.items():
            if call.started_s >= moment_s:
                break
            old.append(entry)
        return old
